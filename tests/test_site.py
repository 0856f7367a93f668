"""The documentation site: built strictly, whole, and with nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_on_it(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    named = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in pages:
        assert (site / page.with_suffix(".html")).is_file()
        assert page.as_posix() in named, f"{page} is not in the navigation of mkdocs.yml"
    for page in ("bundled", "contributing", "changelog"):
        assert (site / f"{page}.html").is_file()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        fetched = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"', text)
        fetched += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="([^"]+)"', text)
        assert not [address for address in fetched if "://" in address], page.name


def test_search_has_every_page_and_works_from_a_disk(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text("utf-8")
    for word in ("tour.html", "tasks/explain-a-word.html", "api/index.html"):
        assert word in index
    assert "assets/worker.js" in (site / "index.html").read_text("utf-8")
    assert (site / "assets" / "worker.js").is_file()


def test_experiments_are_shown_with_their_figures(site: Path) -> None:
    pages = list((site / "experiments").glob("*/table.html"))
    assert len(pages) > 10
    for page in pages:
        assert 'src="figure.png"' in page.read_text("utf-8"), page
        assert "sightline experiment" in page.read_text("utf-8")
        assert (page.parent / "figure.png").is_file()


def test_the_reference_has_examples_as_code(site: Path) -> None:
    text = (site / "api" / "index.html").read_text("utf-8")
    assert 'id="sightline.captioner.Captioner.explain"' in text
    assert text.count('class="highlight"') > 10
    assert "doctest:" not in text
