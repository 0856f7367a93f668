"""What `make demo` runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_demo_captions_its_photographs_and_writes_why(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "examples" / "demo.py"), "--folder", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for name in ("dog.jpg", "duck.jpg", "others/coffee.jpg"):
        picture = ROOT / "examples" / name
        page = tmp_path / f"{picture.stem}.html"
        said = next(n for n, line in enumerate(lines) if line.startswith(f"{picture.name}: a "))
        assert lines[said + 1].split() == ["why:", str(page)]
        assert page.read_text("utf-8").startswith("<!doctype html>")
    index = (tmp_path / "index.html").read_text("utf-8")
    assert all(f'href="{page.name}"' in index for page in tmp_path.glob("[!i]*.html"))
    assert f"Open {tmp_path / 'index.html'}" in done.stdout
