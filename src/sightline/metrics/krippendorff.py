"""Krippendorff's α: how far raters agree beyond chance, on categories without an order."""

from collections.abc import Hashable, Sequence

import numpy as np

from sightline.metrics.score import Floats, Score


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable | None]]) -> Score:
    """α of nominal ratings, one row of ratings for each unit; None where a rater gave none.

    1 is perfect agreement, 0 is what chance would give, and below 0 raters disagree on purpose.
    α = 1 - D_o / D_e, where D_o is the disagreement within units and D_e that between any two
    ratings (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C). Units
    with fewer than two ratings say nothing. NaN where no two ratings differ: then there is
    nothing to agree about. `interval` draws units with replacement.

    >>> round(krippendorff_alpha([["a", "a"], ["a", "b"], ["b", "b"]]).corpus, 3)
    0.444
    """
    values = {value: number for number, value in enumerate(_values(ratings))}
    counts = np.zeros((len(ratings), max(1, len(values))))
    for row, unit in zip(counts, ratings, strict=True):
        for value in unit:
            if value is not None:
                row[values[value]] += 1
    counts[counts.sum(1) < 2] = 0
    statistics = np.column_stack([_pairs_that_differ(counts), counts])
    corpus = float(_alpha(statistics.sum(0)))
    return Score(
        "alpha", corpus, np.full(len(ratings), np.nan), statistics=statistics, combine=_alpha
    )


def _values(ratings: Sequence[Sequence[Hashable | None]]) -> dict[Hashable, None]:
    return dict.fromkeys(value for unit in ratings for value in unit if value is not None)


def _pairs_that_differ(counts: Floats) -> Floats:
    """Of each unit: ordered pairs of ratings that differ, each pair weighing 1 / (m - 1)."""
    size = counts.sum(1)
    return np.asarray((size**2 - (counts**2).sum(1)) / np.maximum(size - 1, 1))


def _alpha(statistics: Floats) -> Floats:
    """Of sums over units `(..., 1 + values)`: the pairs that differ, and each value's count."""
    counts = statistics[..., 1:]
    total = counts.sum(-1)
    expected = total**2 - (counts**2).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.where(expected > 0, 1 - (total - 1) * statistics[..., 0] / expected, np.nan)
        )
