"""Paired bootstrap (Koehn 2004): is the difference between two systems significant?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sightline.errors import DataError
from sightline.metrics.score import Floats, Score

_CELLS = 1 << 22  # of one block of resamples: 32 MB


@dataclass(frozen=True)
class Difference:
    """One metric of two systems on the same pictures.

    `low` and `high` bound the difference with the given confidence. `p` is the two-sided p-value of
    no difference; it is never below 2 / (resamples + 1). All three are NaN where either value is.
    """

    name: str
    value: float
    other: float
    low: float
    high: float
    p: float

    @property
    def difference(self) -> float:
        return self.value - self.other


def compare(
    score: Score,
    other: Score,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Difference:
    """Compare two systems by drawing pictures with replacement, the same for both.

    Each draw is scored by the metric's own corpus statistic: BLEU from summed counts, CIDEr as a
    mean. CIDEr's document frequencies stay those of all pictures. A draw in which the metric is
    undefined (a SPICE category that none of its pictures mentions) is left out of the interval,
    and speaks for neither system: it raises `p`.

    >>> good, bad = Score("x", 0.9, np.full(20, 0.9)), Score("x", 0.1, np.full(20, 0.1))
    >>> compare(good, bad).p < 0.01
    True
    """
    if score.name != other.name or len(score.per_image) != len(other.per_image):
        raise DataError(
            f"cannot compare {score.name} of {len(score.per_image)} pictures with "
            f"{other.name} of {len(other.per_image)}"
        )
    draws = [
        score.resampled(weights) - other.resampled(weights)
        for weights in _draws(len(score.per_image), resamples, seed)
    ]
    differences = np.concatenate(draws)
    if np.isnan(differences).all():
        return Difference(score.name, score.corpus, other.corpus, np.nan, np.nan, np.nan)
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(differences, [tail, 1 - tail])
    # Not `<=` and `>=`: an undefined difference is contrary to either system.
    contrary = min((~(differences > 0)).sum(), (~(differences < 0)).sum())
    p = min(1.0, 2 * (contrary + 1) / (resamples + 1))
    return Difference(score.name, score.corpus, other.corpus, float(low), float(high), float(p))


def interval(
    score: Score, resamples: int = 2000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Bounds of one system's corpus value, had the pictures been others of the same kind.

    >>> low, high = interval(Score("x", 0.5, np.array([0.0, 1.0] * 50)))
    >>> 0.35 < low < 0.45 < 0.55 < high < 0.65
    True
    """
    draws = _draws(len(score.per_image), resamples, seed)
    values = np.concatenate([score.resampled(weights) for weights in draws])
    if np.isnan(values).all():
        return np.nan, np.nan
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _draws(pictures: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each picture is drawn `(rows, pictures)`, in blocks of rows."""
    random = np.random.default_rng(seed)
    block = max(1, _CELLS // pictures)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = random.integers(pictures, size=(rows, pictures))
        yield np.stack([np.bincount(row, minlength=pictures) for row in drawn]).astype(float)
