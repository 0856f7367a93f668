"""The README's figure is made from the page."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
SCRIPT = [sys.executable, str(ROOT / "examples" / "readme_figure.py")]

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.mark.usefixtures("browser")  # skips where there is none
def test_it_shows_a_word_and_its_heatmap(tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    subprocess.run([*SCRIPT, "-o", str(figure)], check=True, capture_output=True)
    pixels = np.asarray(Image.open(figure).convert("RGB")).astype(int)
    assert pixels.shape[1] == 1920
    picture = pixels[80:720, 60:985]
    orange = (picture[..., 0] > 200) & (picture[..., 2] < 90)
    assert 0.003 < orange.mean() < 0.5
    assert orange[320:].sum() > 4 * orange[:320].sum()  # the word is grass, which is below
    assert figure.stat().st_size < 1_000_000


@pytest.mark.usefixtures("browser")
def test_a_word_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SCRIPT, "--word", "zeppelin", "-o", str(tmp_path / "figure.png")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "without 'zeppelin'" in done.stderr
    assert not list(tmp_path.iterdir())
