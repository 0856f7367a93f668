"""The files that a repository's visitors look for: valid, and in step with the package."""

import tomllib
from pathlib import Path

import pytest
import yaml

import sightline

ROOT = Path(__file__).parents[1]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["version"] == sightline.__version__
    assert citation["license"] == project["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_issue_templates_ask_for_the_doctor(path: Path) -> None:
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    labels = [field["attributes"]["label"] for field in form["body"]]
    assert any("sightline doctor" in label for label in labels)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert {field["type"] for field in form["body"]} <= {"textarea", "input", "dropdown"}
