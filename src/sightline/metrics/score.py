"""What every metric returns, and the shape every metric has."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Score:
    """One metric over a set of pictures: its corpus value and the value of each picture.

    `per_image[i]` belongs to the i-th candidate. The corpus value of most metrics is the mean of
    `per_image`; where it is not (BLEU, METEOR), `statistics` holds one row of counts per picture
    and `combine` maps summed rows, of shape `(..., k)`, to corpus values `(...)`, so that a
    resampled corpus is scored by the metric's own statistic.

    >>> Score("CIDEr-D", 0.5, np.array([0.25, 0.75])).resampled(np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([0.5 , 0.75])
    """

    name: str
    corpus: float
    per_image: Floats
    statistics: Floats | None = None
    combine: Callable[[Floats], Floats] | None = None

    def resampled(self, weights: Floats) -> Floats:
        """Corpus values when picture i occurs `weights[..., i]` times."""
        if self.statistics is None or self.combine is None:
            return np.asarray(weights @ self.per_image / weights.sum(axis=-1))
        return self.combine(np.asarray(weights @ self.statistics))


def number(value: float) -> float | None:
    """The value for JSON and CSV, which have no NaN: null, and an empty cell.

    >>> number(0.25), number(math.nan)
    (0.25, None)
    """
    return None if math.isnan(value) else value


class Metric(Protocol):
    """A metric as a function of raw captions, one candidate and one or more references per picture.

    It tokenizes by itself, as its reference tool does, and returns one `Score` for each number it
    reports: CIDEr-D one, BLEU a tuple of four.
    """

    def __call__(
        self, candidates: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Score | tuple[Score, ...]: ...
