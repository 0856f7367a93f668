"""The area under the ROC curve against its definition."""

import math

import numpy as np
import pytest

from sightline.metrics.auc import auc
from sightline.metrics.bootstrap import compare, interval


def by_pairs(scores, right) -> float:
    pairs = [
        (a, b)
        for a, x in zip(scores, right, strict=True)
        if x
        for b, y in zip(scores, right, strict=True)
        if not y
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_it_counts_pairs_and_halves_ties(seed):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 6, 40) / 3  # many ties
    right = random.random(40) < 0.6
    assert auc(scores, right).corpus == pytest.approx(by_pairs(scores, right), abs=1e-12)


def test_resampled_pictures_bring_all_their_words():
    scores = np.array([0.3, 0.1, 0.4, 0.2, 0.4])
    right = np.array([True, False, True, True, False])
    score = auc(scores, right, [0, 0, 1, 2, 2])
    drawn = [0, 1, 2, 2, 2, 3, 3, 4, 4]
    weights = np.array([[1.0, 3.0, 2.0], [0.0, 5.0, 0.0]])
    again = score.resampled(weights)
    assert again[0] == pytest.approx(by_pairs(scores[drawn], right[drawn]))
    assert math.isnan(again[1])  # that picture has right words only


def test_an_interval_holds_the_value_and_narrows_with_more_pictures():
    random = np.random.default_rng(0)
    widths = []
    for count in (60, 600):
        right = random.random(count) < 0.5
        score = auc(right + random.normal(size=count), right)
        low, high = interval(score)
        assert low < score.corpus < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_two_scores_of_the_same_words_are_compared_by_pictures():
    random = np.random.default_rng(1)
    right = random.random(400) < 0.5
    good, bad = (auc(right + s * random.normal(size=400), right) for s in (0.5, 5.0))
    comparison = compare(good, bad)
    assert comparison.low > 0.1
    assert comparison.p < 0.01


def test_all_right_or_all_wrong_is_undefined():
    assert math.isnan(auc([0.1, 0.2], [True, True]).corpus)
