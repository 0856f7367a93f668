"""Single scores of a word, weighed into one: the probability that the word is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.captions import DOUBTFUL, NOT_SUPPORTED, SEEN, Support
from sightline.support.logistic import Floats, Logistic


@dataclass(frozen=True, eq=False)
class WordClassifier:
    """A combination of single scores, and where its verdicts change.

    >>> one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    >>> WordClassifier(("blank",), one, 0.8, 0.3).classify([{"blank": -2.0}])[0].verdict
    'not supported'
    """

    names: tuple[str, ...]  # of the single scores
    combination: Logistic
    seen: float  # from this score on a word counts as seen
    unsupported: float  # up to this score it counts as not supported

    def verdict(self, score: float) -> str:
        """What a score is called."""
        if score <= self.unsupported:
            return NOT_SUPPORTED
        return SEEN if score >= self.seen else DOUBTFUL

    def classify(self, words: Sequence[dict[str, float]]) -> list[Support]:
        """The support of words, of their single scores."""
        if not words:
            return []
        scores = self.combination.predict(table(words, self.names))
        return [
            Support(score, self.verdict(score), {name: single_scores[name] for name in self.names})
            for score, single_scores in zip(scores.tolist(), words, strict=True)
        ]

    def weights_to_json(self) -> dict[str, Any]:
        """What a checkpoint keeps of the weights and the thresholds."""
        return {
            "names": self.names,
            "mean": self.combination.mean.tolist(),
            "scale": self.combination.scale.tolist(),
            "weights": self.combination.weights.tolist(),
            "bias": self.combination.bias,
            "seen": self.seen,
            "unsupported": self.unsupported,
        }


Weights = tuple[tuple[str, ...], Logistic, float, float]


def weights_from_json(content: dict[str, Any], known: Sequence[str]) -> Weights:
    """The fields of a `WordClassifier`; raises what is wrong with them."""
    if unknown := set(content["names"]).difference(known):
        raise ValueError(f"no score is called {unknown.pop()}")
    rows = [np.array(content[name], np.float64) for name in ("mean", "scale", "weights")]
    numbers = [float(content[name]) for name in ("bias", "seen", "unsupported")]
    if not all(row.shape == (len(content["names"]),) for row in rows):
        raise ValueError("there is not a weight for each score")
    if not (all(np.isfinite(row).all() for row in rows) and np.isfinite(numbers).all()):
        raise ValueError("not every weight is finite")
    (mean, scale, weights), (bias, seen, unsupported) = rows, numbers
    return tuple(content["names"]), Logistic(mean, scale, weights, bias), seen, unsupported


def table(words: Sequence[dict[str, float]], names: Sequence[str]) -> Floats:
    """The named scores `(words, names)`."""
    return np.array([[scores[name] for name in names] for scores in words], np.float64)
