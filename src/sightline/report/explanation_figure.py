"""Words by methods, a heatmap for each, as in the figures of paper 4."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from sightline.captions import Word
from sightline.explain.methods import find_method
from sightline.report import colours
from sightline.report.heatmaps import fit, heatmap
from sightline.report.report import Report
from sightline.report.wording import MARKS, likelihood, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIDE = 192  # pixels of the longer side of each small picture
_COLUMNS = 8  # words side by side at most; the rest go on below


def draw_explanations(report: Report) -> "Figure":
    """A row for each method and a column for each word; the picture itself comes first.

    Orange speaks for a word, blue against it. Each panel has a scale of its own, symmetric about
    zero: methods have no common unit, and words differ in how much they take from the picture.

    >>> draw_explanations(captioner.report("photo.jpg")).savefig("why.png")  # doctest: +SKIP
    """
    from matplotlib.figure import Figure

    explained = {(why.method, why.place, why.word): why for why in report.explanations}
    columns = _explained_words(report)
    below = math.ceil(len(columns) / _COLUMNS)
    width = math.ceil(len(columns) / below)  # blocks of about the same width
    blocks = [columns[start : start + width] for start in range(0, len(columns), width)]
    methods = report.methods
    size = fit(*report.picture.size, _SIDE)
    shape = size[1] / size[0]
    figure = Figure(
        figsize=(1.75 * (width + 1), len(blocks) * (1.75 * shape * len(methods) + 0.5) + 0.9),
        layout="constrained",
    )
    heights = [shape] * len(methods) * len(blocks)
    panels = figure.subplots(
        len(heights),
        width + 1,
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
        subplot_kw={"xticks": (), "yticks": ()},  # unseen, too, they would be laid out
    )
    for panel in panels.ravel():
        panel.set_axis_off()
    panels[0, 0].imshow(report.picture.resize(size))
    for number, block in enumerate(blocks):
        for row, method in enumerate(methods, number * len(methods)):
            panels[row, 1].annotate(
                find_method(method).label.replace(" ", "\n"),
                (-0.04, 0.5),
                xycoords="axes fraction",
                rotation=90,
                ha="right",
                va="center",
                fontsize=10,
            )
            for panel, (title, place, word) in zip(panels[row, 1:], block, strict=False):
                relevance = heatmap(explained[method, place, word], _SIDE)
                panel.imshow(colours.overlay(report.picture, relevance.values))
                if row == number * len(methods):
                    panel.set_title(title, fontsize=11)
    title = "\n".join(filter(None, (report.caption.text, report.unfamiliar)))
    figure.suptitle(title, fontsize=13, wrap=True)
    _add_scale(figure, panels)
    return figure


def _explained_words(report: Report) -> list[tuple[str, int, str]]:
    """Titles, places and words, as they stand in the caption; then those that it does not say."""
    said = [(_title(word), place, word.text) for place, word in enumerate(report.caption.words)]
    unsaid = [
        (f"not: {_title(counterfactual.word)}", counterfactual.place, counterfactual.word.text)
        for counterfactual in report.counterfactuals
    ]
    asked = {(why.place, why.word) for why in report.explanations}
    return [column for column in said + unsaid if column[1:] in asked]


def _title(word: Word) -> str:
    mark = "" if word.support is None else f"{MARKS[word.support.verdict]} "
    return f"{mark}{readable(word.text)}\n{likelihood(word.log_probability)}"


def _add_scale(figure: "Figure", panels: Any) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    grey = Image.new("L", (255, 1), 128)
    ramp = np.asarray(colours.overlay(grey, np.linspace(-1, 1, 255, dtype=np.float32)[None]))[0]
    bar = figure.colorbar(
        ScalarMappable(Normalize(-1, 1), ListedColormap(ramp / 255)),
        ax=panels,
        location="bottom",
        shrink=min(2.7 / panels.shape[1], 0.6),
        aspect=40,
        pad=0.02,
    )
    bar.set_ticks([-1, 0, 1], labels=["against the word", "0", "for the word"], fontsize=9)
    bar.outline.set_visible(False)
