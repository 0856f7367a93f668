"""A mean over words with its interval over pictures, and tables of such means."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.metrics.bootstrap import interval
from sightline.metrics.score import Floats, Score


@dataclass(frozen=True)
class Estimate:
    """A mean, and the bounds that it has in 95 of 100 draws of pictures."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return self.show()

    def show(self, factor: float = 1.0, digits: int = 1, sign: str = "") -> str:
        """
        >>> Estimate(0.5, 0.4, 0.61, 9).show(100), Estimate(0.5, 0.4, 0.61, 9).show(sign="+")
        ('50.0 (40.0 to 61.0)', '+0.5 (+0.4 to +0.6)')
        """
        if not self.count:
            return "-"
        mean, low, high = (
            f"{factor * number:{sign}.{digits}f}" for number in (self.mean, self.low, self.high)
        )
        return f"{mean} ({low} to {high})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; without a number there are none."""
        if not self.count:
            return {"mean": None, "low": None, "high": None, "count": 0}
        return {"mean": self.mean, "low": self.low, "high": self.high, "count": self.count}


def estimate(values: Sequence[float], pictures: Sequence[Hashable]) -> Estimate:
    """The mean of values, each of which belongs to a picture; words of one picture are alike.

    >>> estimate([0.0, 0.0, 1.0], ["a", "a", "b"])
    Estimate(mean=0.3333333333333333, low=0.0, high=1.0, count=3)
    """
    if not values:
        return Estimate(np.nan, np.nan, np.nan, 0)
    numbers = {picture: number for number, picture in enumerate(dict.fromkeys(pictures))}
    statistics = np.zeros((len(numbers), 2))
    for value, picture in zip(values, pictures, strict=True):
        statistics[numbers[picture]] += value, 1
    score = Score(
        "mean", float(np.mean(values)), _ratio(statistics), statistics=statistics, combine=_ratio
    )
    return Estimate(score.corpus, *interval(score), len(values))


def _ratio(statistics: Floats) -> Floats:
    """Sums over counts, of rows `(..., 2)`."""
    return np.asarray(statistics[..., 0] / statistics[..., 1])


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(to_markdown(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
