"""A mean over words with its interval over pictures, and tables of such means."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sightline.metrics.bootstrap import interval
from sightline.metrics.score import Floats, Score


@dataclass(frozen=True)
class Estimate:
    """A mean, and the bounds that it has in 95 of 100 draws of pictures, or of seeds."""

    mean: float
    low: float
    high: float
    count: int
    pictures: int | None = field(default=None, repr=False)  # that values are of, where it is kept

    def __str__(self) -> str:
        return self.show()

    def show(self, factor: float = 1.0, digits: int = 1, sign: str = "") -> str:
        """
        >>> Estimate(0.5, 0.4, 0.61, 9).show(100), Estimate(0.5, 0.4, 0.61, 9).show(sign="+")
        ('50.0 (40.0 to 61.0)', '+0.5 (+0.4 to +0.6)')
        """
        if not self.count or np.isnan(self.mean):
            return "-"
        mean, low, high = (
            f"{factor * number:{sign}.{digits}f}" for number in (self.mean, self.low, self.high)
        )
        return f"{mean} ({low} to {high})" if self.bounded else mean

    @property
    def bounded(self) -> bool:
        """Whether there is an interval: not of one picture or seed."""
        return not np.isnan(self.low)

    def above(self, bound: float = 0.0) -> bool:
        """Whether the whole interval is."""
        return self.low > bound  # (never, where there is none)

    def below(self, bound: float = 0.0) -> bool:
        """Whether the whole interval is."""
        return self.high < bound

    def __neg__(self) -> "Estimate":
        """
        >>> -Estimate(0.5, 0.4, 0.75, 9)
        Estimate(mean=-0.5, low=-0.75, high=-0.4, count=9)
        """
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low)

    def shifted(self, by: float) -> "Estimate":
        """So much higher, with the same interval.

        >>> (-Estimate(0.5, 0.25, 0.75, 9)).shifted(1)  # how far it is below 1
        Estimate(mean=0.5, low=0.25, high=0.75, count=9)
        """
        return replace(self, mean=self.mean + by, low=self.low + by, high=self.high + by)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; what is not known is null."""
        numbers = {"mean": self.mean, "low": self.low, "high": self.high}
        known = {name: None if np.isnan(value) else value for name, value in numbers.items()}
        pictures = {} if self.pictures is None else {"pictures": self.pictures}
        return {**known, "count": self.count, **pictures}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Estimate":
        """The inverse.

        >>> Estimate.from_json({"mean": 0.5, "low": None, "high": None, "count": 1}).show()
        '0.5'
        """
        mean, low, high = (
            np.nan if values[name] is None else float(values[name])
            for name in ("mean", "low", "high")
        )
        return cls(mean, low, high, int(values["count"]), values.get("pictures"))


def estimate(values: Sequence[float], pictures: Sequence[Hashable]) -> Estimate:
    """The mean of values, each of which belongs to a picture; words of one picture are alike.

    >>> estimate([0.0, 0.0, 1.0], ["a", "a", "b"])
    Estimate(mean=0.3333333333333333, low=0.0, high=1.0, count=3)
    """
    return _estimate([(values, pictures)])


def estimate_difference(
    values: Sequence[float],
    pictures: Sequence[Hashable],
    others: Sequence[float],
    of_others: Sequence[Hashable],
) -> Estimate:
    """How much higher the mean of some values is than that of others of the same pictures.

    Both are drawn with their picture, so that what is common to them does not widen the interval.

    >>> estimate_difference([1.0, 3.0], ["a", "b"], [0.0, 2.0], ["a", "b"])
    Estimate(mean=1.0, low=1.0, high=1.0, count=2)
    """
    return _estimate([(values, pictures), (others, of_others)])


def _estimate(groups: Sequence[tuple[Sequence[float], Sequence[Hashable]]]) -> Estimate:
    """The mean of the first group, minus that of the second if there is one."""
    count = min(len(values) for values, _ in groups)
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0)
    named = dict.fromkeys(picture for _, pictures in groups for picture in pictures)
    numbers = {picture: number for number, picture in enumerate(named)}
    statistics = np.zeros((len(numbers), 2 * len(groups)))
    for group, (values, pictures) in enumerate(groups):
        for value, picture in zip(values, pictures, strict=True):
            statistics[numbers[picture], 2 * group : 2 * group + 2] += value, 1
    mean = float(_means(statistics.sum(0)))
    if len(numbers) == 1:  # other pictures may say anything
        return Estimate(mean, np.nan, np.nan, count, 1)
    per_picture = np.full(len(numbers), np.nan)
    score = Score("mean", mean, per_picture, statistics=statistics, combine=_means)
    return Estimate(mean, *interval(score), count, len(numbers))


# Student's t at 97.5 %, for 1, 2, … degrees of freedom; beyond them, within 1 % of the last.
_STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201]
_STUDENT += [2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069]
_STUDENT += [2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def estimate_seeds(values: Sequence[float]) -> Estimate:
    """The mean over seeds with Student's interval; of one seed there is none.

    >>> estimate_seeds([1.0, 2.0, 3.0]).show(digits=2)
    '2.00 (-0.48 to 4.48)'
    """
    count = len(values)
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0)
    mean = float(np.mean(values))
    if count == 1:
        return Estimate(mean, np.nan, np.nan, 1)
    bound = _STUDENT[min(count - 1, len(_STUDENT)) - 1] * float(np.std(values, ddof=1))
    bound /= count**0.5
    return Estimate(mean, mean - bound, mean + bound, count)


def estimate_gap(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """How much higher the mean of some runs is than that of others, with Welch's interval.

    `count` is that of the fewer runs; where there is one of either, there is no interval.

    >>> estimate_gap([2.0, 3.0, 4.0], [1.0, 1.0, 1.0]).show(digits=2)
    '2.00 (-0.48 to 4.48)'
    """
    count = min(len(ours), len(theirs))
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0)
    mean = float(np.mean(ours) - np.mean(theirs))
    if count == 1:
        return Estimate(mean, np.nan, np.nan, 1)
    errors = [float(np.var(values, ddof=1)) / len(values) for values in (ours, theirs)]
    freedom = sum(
        error**2 / (len(values) - 1) for error, values in zip(errors, (ours, theirs), strict=True)
    )
    degrees = int(sum(errors) ** 2 / freedom) if freedom else len(_STUDENT)
    bound = _STUDENT[min(degrees, len(_STUDENT)) - 1] * sum(errors) ** 0.5
    return Estimate(mean, mean - bound, mean + bound, count)


def rows_to_json(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table as plain JSON.

    >>> rows_to_json([{"layer": 1, "tau": Estimate(0.5, np.nan, np.nan, 1)}])
    [{'layer': 1, 'tau': {'mean': 0.5, 'low': None, 'high': None, 'count': 1}}]
    """
    return [
        {name: v.to_json() if isinstance(v, Estimate) else v for name, v in row.items()}
        for row in rows
    ]


def error_bars(values: Sequence[Estimate], factor: float = 1.0) -> list[list[float]]:
    """How far the bounds are below and above the means, as Matplotlib takes them.

    >>> error_bars([Estimate(0.5, 0.25, 0.75, 9)], 100)
    [[25.0], [25.0]]
    """
    # (A bound may be beyond the mean by what numbers are rounded by; one seed has no bounds.)
    return [
        [max(factor * (value.mean - value.low), 0.0) for value in values],
        [max(factor * (value.high - value.mean), 0.0) for value in values],
    ]


def _means(statistics: Floats) -> Floats:
    """Sums over counts of rows `(..., 2)`; of rows `(..., 4)`, the difference of two such means."""
    # (A draw may have no value of a group.)
    with np.errstate(invalid="ignore"):
        means = statistics[..., 0::2] / statistics[..., 1::2]
    return np.asarray(means[..., 0] - means[..., 1] if means.shape[-1] > 1 else means[..., 0])


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(to_markdown(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
