"""What `make demo` runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_demo_captions_a_photograph_and_writes_why(examples: Path, tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "examples" / "demo.py"), "--folder", str(tmp_path)]
    picture = examples / "officer.jpg"
    done = subprocess.run([*script, str(picture)], capture_output=True, text=True, check=True)
    said, why, *_ = done.stdout.splitlines()
    assert said.startswith("officer.jpg: a ")
    page = tmp_path / "officer.html"
    assert why.split() == ["why:", str(page)]
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [page]
