"""The how-tos do what they say: their files and commands, in a folder outside the package."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sightline.encoders.registry import ENCODERS
from sightline.explain.methods import METHODS
from sightline.models.registry import MODELS
from sightline.plugins import _entry_points, entries_of
from sightline.training.objectives.registry import OBJECTIVES

PAGES = sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("*.md"))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def write_files(text: str, folder: Path) -> None:
    """What the page says to save, under the names it gives."""
    files = re.findall(
        r"Save this as `(\S+)`:\n\n```(?:python|yaml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    )
    assert len(files) == len(blocks(text, "python")) + len(blocks(text, "yaml"))
    for name, content in files:
        (folder / name).write_text(content, encoding="utf-8")


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a person would: in a shell, where `sightline` is this interpreter's."""
    command = folder / "bin" / "sightline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sightline "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if k != "SIGHTLINE_PLUGINS"}
    return subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_how_to(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    write_files(text, tmp_path)
    script = "\n".join(blocks(text, "sh"))
    assert "sightline check-plugin" in script
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^(\d+) of \1 laws hold\.$", done.stdout, re.MULTILINE)
    made = {path.name for path in tmp_path.rglob("*")}
    assert page.stem == "add-an-objective" or "why.html" in made
    if page.stem == "add-a-captioner":
        assert re.search(r"test-000001\.png: \w+", done.stdout)
        content = re.search(r'id="data">(.*?)</script>', (tmp_path / "why.html").read_text("utf-8"))
        assert content is not None
        methods = {method["name"] for method in json.loads(content[1])["methods"]}
        assert methods >= {"lrp", "grad_cam", "guided_grad_cam", "attention", "occlusion"}
        assert json.loads(next(tmp_path.rglob("config.json")).read_text("utf-8"))["plugins"] == {
            "gru": "gru_captioner"
        }
    if page.stem == "add-an-objective":
        history = (tmp_path / "runs" / "focal" / "history.jsonl").read_text("utf-8")
        assert '"focal"' in history


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_package_is_to_name_is_found(page: Path, tmp_path: Path) -> None:
    """As pip would install it: the file, and its metadata beside it."""
    text = page.read_text("utf-8")
    write_files(text, tmp_path)
    (metadata,) = blocks(text, "toml")
    ((group, points),) = tomllib.loads(metadata)["project"]["entry-points"].items()
    ((name, value),) = points.items()
    folder = tmp_path / "mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    sys.path.append(str(tmp_path))
    _entry_points.cache_clear()
    try:
        registry = {
            "sightline.models": MODELS,
            "sightline.objectives": OBJECTIVES,
            "sightline.methods": METHODS,
            "sightline.encoders": ENCODERS,
        }[group]
        assert name in registry.names()
        assert isinstance(registry.find(name), registry.entry)
        assert entries_of(value.split(":")[0], registry.kind) == [name]
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop(value.split(":")[0], None)
        _entry_points.cache_clear()


def test_there_are_four() -> None:
    assert [page.stem for page in PAGES] == [
        "add-a-captioner",
        "add-a-method",
        "add-an-encoder",
        "add-an-objective",
    ]
