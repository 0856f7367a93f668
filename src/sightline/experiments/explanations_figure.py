"""The figure of the benchmark of explanation methods: a row of panels for each captioner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.evaluation.perturbation import FRACTIONS, ORDERS, REPLACEMENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RANDOM = "random"  # the row that is chance
COLOURS = [f"C{n}" for n in (3, 1, 2, 4, 0, 5, 6, 8, 9, 7)]


def draw(rows: Sequence[dict[str, Any]]) -> "Figure":
    """Where maps are, on the left; what hiding what they show does to a word, on the right.

    Parts that were never hidden have no panel. In the curves, the most relevant parts go first in
    solid lines, the least relevant in dashed ones: the farther apart, the truer the map.
    """
    from matplotlib.figure import Figure

    runs = list(dict.fromkeys(row["run"] for row in rows))
    names = list(dict.fromkeys(row["map"] for row in rows))
    others = [name for name in names if name != RANDOM]
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(others)}
    colours[RANDOM] = "black"
    hidden = [p for p in ("regions", "pixels") if any(row["curves"][p] for row in rows)]
    figure = Figure(figsize=(4.7 * (1 + len(hidden)) + 1.6, 4.2 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), 1 + len(hidden), squeeze=False)
    for run, (places, *curves) in zip(runs, panels, strict=True):
        of_run = [row for row in rows if row["run"] == run]
        for row in of_run:
            _mark(places, row, colours[row["map"]])
            for parts, panel in zip(hidden, curves, strict=True):
                _curve(panel, row, parts, colours[row["map"]])
        places.set_title(run, fontsize=10)
        places.axvline(0, color="grey", linewidth=0.8)
        places.axhline(50, color="grey", linewidth=0.8)
        places.set_xlabel("inside the box, above its area (points)")
        places.set_ylabel("prefers its box to another word's (%)")
        for parts, panel in zip(hidden, curves, strict=True):
            panel.set_xlabel(f"{parts} hidden (%)")
            panel.set_ylabel("probability the word loses (points)")
        last = [places, *curves][-1]
        handles = [last.plot([], [], color=colours[row["map"]])[0] for row in of_run]
        maps = [row["map"] for row in of_run]
        last.legend(handles, maps, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _mark(panel: "Axes", row: dict[str, Any], colour: str) -> None:
    x, y = row["inside"], row["prefers_its_box"]
    if not y.count:
        return
    xerr, yerr = ([[100 * (e.mean - e.low)], [100 * (e.high - e.mean)]] for e in (x, y))
    panel.errorbar(100 * x.mean, 100 * y.mean, yerr, xerr, fmt="o", color=colour, elinewidth=0.8)


def _curve(panel: "Axes", row: dict[str, Any], parts: str, colour: str) -> None:
    curves = row["curves"][parts]
    if curves is None:
        return
    shape = (len(ORDERS), len(REPLACEMENTS), len(FRACTIONS))
    by_order = 100 * np.array(curves).reshape(shape).mean(1)
    for values, line in zip(by_order, ("-", "--"), strict=True):
        panel.plot([0, *(100 * f for f in FRACTIONS)], [0, *values], line, color=colour)
