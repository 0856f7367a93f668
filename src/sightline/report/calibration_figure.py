"""Support against the share of words that are right: the calibration of a check as a figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_calibrations(named: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> "Figure":
    """A panel for each name, with bins as `sightline.support.calibration.calibrate` makes them.

    The line is perfect calibration: as many words are right as their support says. Bars over the
    points are 95 % intervals, grey columns the share of the words that is in each bin.
    """
    from matplotlib.figure import Figure

    columns = max(1, min(len(named), 3))
    rows = max(1, -(-len(named) // columns))
    figure = Figure(figsize=(3.4 * columns, 3.2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(named) :]:
        panel.axis("off")
    for panel, (name, bins) in zip(panels, named, strict=False):
        support = [each["support"] for each in bins]
        right = np.array([each["right"] for each in bins])
        words = np.array([each["words"] for each in bins])
        bounds = np.array([[each["interval"][end] for each in bins] for end in ("low", "high")])
        panel.bar(
            [each["low"] for each in bins],
            words / max(words.sum(), 1),
            width=[each["high"] - each["low"] for each in bins],
            align="edge",
            color="0.88",
        )
        panel.plot([0, 1], [0, 1], color="0.5", linewidth=1)
        # (An interval of few resamples need not hold the share itself.)
        lengths = np.maximum([right - bounds[0], bounds[1] - right], 0)
        panel.errorbar(support, right, lengths, fmt="o", color="C0", markersize=4, linewidth=1)
        panel.set(xlim=(0, 1), ylim=(0, 1))
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("support", fontsize=8)
        panel.set_ylabel("share of words that are right", fontsize=8)
    return figure
