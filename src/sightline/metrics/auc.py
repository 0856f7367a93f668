"""The area under the ROC curve: how often a right word has a higher score than a wrong one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.metrics.score import Floats, Score

_ROWS = 256  # resamples that are ranked at once


@dataclass(frozen=True, eq=False)
class Auc(Score):
    """An AUC that can be computed anew for resampled pictures, as `bootstrap.interval` does.

    A picture alone has none (`per_image` is NaN): words of different pictures are compared, too.
    """

    pictures: NDArray[np.int64] = field(kw_only=True)  # of each word, words by rising score
    right: NDArray[np.bool_] = field(kw_only=True)
    ties: NDArray[np.int64] = field(kw_only=True)  # where each new score begins

    def resampled(self, weights: Floats) -> Floats:
        rows = weights.reshape(-1, weights.shape[-1])
        parts = [self._areas(rows[n : n + _ROWS]) for n in range(0, len(rows), _ROWS)]
        return np.concatenate(parts).reshape(weights.shape[:-1])

    def _areas(self, weights: Floats) -> Floats:
        words = weights[:, self.pictures]
        right = np.add.reduceat(words * self.right, self.ties, axis=1)
        wrong = np.add.reduceat(words * ~self.right, self.ties, axis=1)
        below = wrong.cumsum(axis=1) - wrong / 2  # equal scores are half a success
        pairs = right.sum(axis=1) * wrong.sum(axis=1)
        undefined = np.full(len(weights), np.nan)
        area = (right * below).sum(axis=1)
        return np.asarray(np.divide(area, pairs, out=undefined, where=pairs > 0))


def auc(
    scores: ArrayLike,
    right: Sequence[bool] | NDArray[np.bool_],
    pictures: Sequence[int] | NDArray[np.int64] | None = None,
    name: str = "AUC",
) -> Auc:
    """The AUC of words' scores against whether the words are right; NaN if all are, or none is.

    `pictures` numbers the picture of each word, so that resampling keeps a picture's words
    together; without it each word is a picture of its own.

    >>> auc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]).corpus
    0.75
    """
    scores = np.asarray(scores, np.float64)
    picture_numbers = np.arange(len(scores)) if pictures is None else np.asarray(pictures, np.int64)
    count = int(picture_numbers.max(initial=-1)) + 1
    order = np.argsort(scores, kind="stable")
    ties = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    score = Auc(
        name,
        np.nan,
        np.full(count, np.nan),
        pictures=picture_numbers[order],
        right=np.asarray(right, np.bool_)[order],
        ties=ties,
    )
    object.__setattr__(score, "corpus", float(score.resampled(np.ones(count))))
    return score
