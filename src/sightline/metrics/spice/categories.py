"""SPICE's value for all tuples together and for each kind of tuple."""

from collections.abc import Mapping, Sequence

import numpy as np

from sightline.errors import DataError
from sightline.metrics.score import Floats, Score

# The kinds of tuple that SPICE reports; the last three are parts of "attribute".
CATEGORIES = ("object", "relation", "attribute", "colour", "count", "size")


def category_scores(name: str, pictures: Sequence[Mapping[str, float]]) -> tuple[Score, ...]:
    """One score for "all", then one for each category, from each picture's F-scores by category.

    A picture of which neither side says anything of a category is NaN there, and is left out of
    that category's mean.

    >>> scores = category_scores("SPICE", [{"all": 0.5, "object": 0.4}, {"all": 0.1}])
    >>> [(score.name, float(score.corpus)) for score in scores[:2]]
    [('SPICE', 0.3), ('SPICE object', 0.4)]
    """
    if not pictures:
        raise DataError("there is nothing to score: no candidate was given")
    overall = np.array([picture["all"] for picture in pictures])
    scores = [Score(name, float(overall.mean()), overall)]
    for category in CATEGORIES:
        values = np.array([picture.get(category, np.nan) for picture in pictures])
        defined = ~np.isnan(values)
        statistics = np.column_stack([np.where(defined, values, 0.0), defined]).astype(np.float64)
        corpus = float(_mean_of_defined(statistics.sum(axis=0)))
        scores.append(Score(f"{name} {category}", corpus, values, statistics, _mean_of_defined))
    return tuple(scores)


def _mean_of_defined(summed: Floats) -> Floats:
    total, count = summed[..., 0], summed[..., 1]
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
