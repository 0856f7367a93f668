"""Calibration: how many of the words with about the same support are right."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.metrics.bootstrap import interval
from sightline.metrics.score import Score
from sightline.support.logistic import Floats

BINS = 10  # of support


def calibrate(
    support: Floats, right: NDArray[np.bool_], pictures: NDArray[np.int64] | None = None
) -> list[dict[str, Any]]:
    """Bins of support: how many words, their mean support, and the share that is right.

    With the number of each word's picture, the share comes with its 95 % interval over pictures:
    words of one picture are right or wrong together.

    >>> calibrate(np.array([0.1, 0.95, 0.95]), np.array([False, True, False]))[-1]["right"]
    0.5
    """
    bins = np.minimum((support * BINS).astype(int), BINS - 1)
    return [_bin(n, support, right, pictures, bins == n) for n in range(BINS) if (bins == n).any()]


def _bin(
    n: int,
    support: Floats,
    right: NDArray[np.bool_],
    pictures: NDArray[np.int64] | None,
    here: NDArray[np.bool_],
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "low": n / BINS,
        "high": (n + 1) / BINS,
        "words": int(here.sum()),
        "support": float(support[here].mean()),
        "right": float(right[here].mean()),
    }
    if pictures is not None:
        low, high = interval(_share(right[here], pictures[here]))
        content["interval"] = {"low": low, "high": high}
    return content


def _share(right: NDArray[np.bool_], pictures: NDArray[np.int64]) -> Score:
    """The share of right words, which can be computed anew for resampled pictures."""
    numbers, rows = np.unique(pictures, return_inverse=True)
    counts = np.stack([np.bincount(rows, right), np.bincount(rows)], 1).astype(np.float64)
    unknown = np.full(len(numbers), np.nan)  # a picture may have any number of words
    return Score(
        "right", float(right.mean()), unknown, counts, lambda sums: sums[..., 0] / sums[..., 1]
    )
