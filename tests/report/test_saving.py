"""Figures as files."""

import pytest
from matplotlib.figure import Figure

from sightline.report.saving import save_figure


def draw():
    """Many panels that are clipped, whose paths are named after addresses in memory."""
    figure = Figure()
    for panel in figure.subplots(4, 4).flat:
        panel.imshow([[0, 1], [1, 0]])
    return figure


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_figure_is_the_same_file(tmp_path, suffix):
    paths = [tmp_path / f"{number}.{suffix}" for number in range(3)]
    for path in paths:
        save_figure(draw(), path)
    assert len({path.read_bytes() for path in paths}) == 1


def test_every_clip_path_that_is_used_is_there(tmp_path):
    save_figure(draw(), tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    used = {part.split(")")[0] for part in text.split("url(#")[1:]}
    there = {part.split('"')[0] for part in text.split('<clipPath id="')[1:]}
    assert used == there
    assert len(there) == 16
