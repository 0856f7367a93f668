"""Is relevance on the object that a word names? Measures of one heatmap, or of two.

The positive part of a heatmap counts. What lies inside boxes is a mask of its pixels.
"""

import numpy as np
from numpy.typing import NDArray

Heatmap = NDArray[np.floating]  # (H, W)
Mask = NDArray[np.bool_]  # (H, W)

THRESHOLDS = np.arange(10) / 10
"""Relevance below so much of the largest is left out; eq. 9 leaves out none."""


def correctness(relevance: Heatmap, mask: Mask) -> NDArray[np.float64]:
    """The share inside `(thresholds,)` of relevance above each threshold (paper 4, eq. 9, fig. 3).

    Nothing positive at all is nothing inside.

    >>> relevance = np.array([[4.0, 1.0, -3.0, 3.0]])
    >>> shares = correctness(relevance, np.array([[True, True, True, False]]))
    >>> shares[[0, 5]].round(3).tolist()  # of 4 + 1 + 3; from half the largest on, of 4 + 3
    [0.625, 0.571]
    """
    positive = np.clip(relevance.astype(np.float64), 0, None)
    peak = positive.max()
    if peak <= 0:
        return np.zeros(len(THRESHOLDS))
    # Pixels by the threshold they just pass: then every sum is a sum from some bin on.
    bins = np.minimum((positive / peak * len(THRESHOLDS)).astype(int), len(THRESHOLDS) - 1)
    all_of, of_those = (
        np.bincount(bins[chosen], positive[chosen], len(THRESHOLDS))[::-1].cumsum()[::-1]
        for chosen in (np.ones_like(mask), mask)
    )
    return np.asarray(of_those / all_of)


def share_inside(relevance: Heatmap, mask: Mask) -> float:
    """The share of positive relevance inside the boxes (paper 4, eq. 9).

    >>> share_inside(np.array([[3.0, -9.0, 1.0]]), np.array([[True, True, False]]))
    0.75
    """
    positive = np.clip(relevance.astype(np.float64), 0, None)
    return float(positive[mask].sum() / max(positive.sum(), 1e-300))


def pointed(relevance: Heatmap, mask: Mask) -> float:
    """Whether the most relevant pixel is inside (the pointing game, Zhang et al. 2016).

    All pixels of a region may be the most relevant: then it is the share of them inside.

    >>> pointed(np.array([[3.0, 3.0, 1.0]]), np.array([[True, False, False]]))
    0.5
    """
    peak = relevance.max()
    return float(mask[relevance >= peak - 1e-5 * abs(peak)].mean())


def lean(relevance: Heatmap, mask: Mask, other: Mask) -> float:
    """How far a map leans towards one word's boxes, against another's: 0 to 1, 0.5 for neither.

    What counts is positive relevance per pixel, so that a large box has no advantage. Above 0.5
    the map prefers the boxes of `mask`.

    >>> left, right = np.array([[True, True, False]]), np.array([[False, False, True]])
    >>> lean(np.array([[3.0, 3.0, 1.0]]), left, right)
    0.75
    """
    positive = np.clip(relevance.astype(np.float64), 0, None)
    here, there = float(positive[mask].mean()), float(positive[other].mean())
    return here / (here + there) if here + there > 0 else 0.5


def overlap(mask: Mask, other: Mask) -> float:
    """How much of the smaller one lies in the larger one: 1 if it is all inside.

    >>> overlap(np.array([[True, True, False]]), np.array([[False, True, True]]))
    0.5
    """
    return float((mask & other).sum() / max(min(mask.sum(), other.sum()), 1))
