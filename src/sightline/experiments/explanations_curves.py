"""Deletion and insertion, each by itself, and against the printed rules of paper 4.

The benchmark's columns *regions hidden* and *pixels hidden* are deletion minus insertion. A map may
be ahead in one and behind in the other, or with one replacement only: here they stand apart, and a
difference to `lrp` is one of the same words.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.evaluation.perturbation import FRACTIONS, ORDERS, REPLACEMENTS
from sightline.experiments.estimate import Estimate, estimate
from sightline.experiments.experiment import Record

PRINTED = "lrp"  # the map of the rules as paper 4 prints them
PARTS = ("regions", "pixels")
MEASURES = ("deletion", "insertion")  # what a word loses as the most, or least, relevant go first


def summarise_curves(run: str, names: Sequence[str], records: Sequence[Record]) -> list[Any]:
    """A row for each kind of part, replacement and map that was measured: estimates by name."""
    words = [
        (record["picture"], word["maps"])
        for record in records
        if record["run"] == run
        for word in record["words"]
    ]
    rows = []
    for parts in PARTS:
        # Of a word, every map is measured, or none is.
        some = [(picture, maps) for picture, maps in words if parts in maps[names[0]]]
        if not some:
            continue
        pictures = [picture for picture, _ in some]
        falls = {name: np.array([_falls(maps[name][parts]) for _, maps in some]) for name in names}
        for place, replacement in enumerate(REPLACEMENTS):
            for name in names:
                mine = falls[name][:, :, place]
                theirs = falls[PRINTED][:, :, place] if PRINTED in names else None
                row: dict[str, Any] = {"run": run, "map": name, "parts": parts}
                row |= {"replacement": replacement, **_estimate(mine, pictures)}
                if theirs is not None:
                    row |= _estimate(mine - theirs, pictures, f"_minus_{PRINTED}")
                rows.append(row)
    return rows


def _falls(curves: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """What a word loses, the mean of all fractions, by order and replacement `(2, 2)`."""
    shape = (len(ORDERS), len(REPLACEMENTS), len(FRACTIONS))
    return np.asarray(np.reshape(curves, shape).mean(2))


def _estimate(
    falls: NDArray[np.float64], pictures: Sequence[str], suffix: str = ""
) -> dict[str, Estimate]:
    """Of each order, of words `(words, 2)`."""
    return {
        measure + suffix: estimate(falls[:, order].tolist(), pictures)
        for order, measure in enumerate(MEASURES)
    }
