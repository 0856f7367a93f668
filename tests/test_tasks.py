"""The tour and the pages of tasks do what they say: their commands, in order, in a fresh folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "tour.md", *sorted((ROOT / "docs" / "tasks").glob("*.md"))]
# What each page leaves behind, so that a command that does nothing is noticed.
MADE = {
    "tour": ("why.html", "report/report.html", "runs/tour/evaluation-test/scores.json"),
    "caption-a-collection": ("captions.csv", "dog.html"),
    "check-a-delivery": ("report/report.html", "report/audit.json", "both/words.csv"),
    "explain-a-word": ("why.html", "why.png", "why.json"),
    "train-on-your-own": ("mine.yaml", "runs/mine/checkpoints.json", "figures/test-000001.png"),
    "check-another-captioner": (
        *("their-captioner/config.json", "why.html", "why.png"),
        *("captioners/vit-gpt2/support.safetensors", "captions.jsonl"),
    ),
    "review-a-collection": ("reviewed.csv", "photos/dog.xmp", "photos.review/review.sqlite"),
    "compare-blind": ("study/study.json", "study/answers.sqlite", "table/table.md"),
    "reproduce-a-table": ("table/table.md", "table/figure.png", "table/data.json"),
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """The commands and programs of a page, in order."""
    text = page.read_text("utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "docs" / "how-to" / "add-a-captioner.md"], ids=lambda page: page.stem
)
def test_it_has_a_picture(page: Path) -> None:
    pictures = re.findall(r"!\[.+?\]\((\S+?)\)", page.read_text("utf-8"))
    assert pictures
    for picture in pictures:
        assert (page.parent / picture).is_file()


@pytest.mark.process
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_commands_work(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "photos").mkdir()
    shutil.copyfile(ROOT / "examples" / "dog.jpg", tmp_path / "photos" / "dog.jpg")
    shutil.copyfile(ROOT / "examples" / "dog.jpg", tmp_path / "photo.jpg")
    programs = tmp_path / "bin"
    programs.mkdir()
    # (A link to a virtual environment's Python would not find its packages.)
    for name, arguments in (("sightline", "-m sightline "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "SIGHTLINE_CACHE": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    for language, code in blocks(page):
        command = ["sh", "-e", "-c", code] if language == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr[-2000:]}"
    for name in MADE[page.stem]:
        assert (tmp_path / name).stat().st_size > 0
