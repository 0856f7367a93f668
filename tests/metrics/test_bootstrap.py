import numpy as np
import pytest

from sightline.errors import DataError
from sightline.metrics import Score, bleu, compare, interval
from sightline.metrics.spice.categories import category_scores


def scores(values):
    return Score("x", float(np.mean(values)), np.asarray(values, float))


def test_a_clear_difference_is_found():
    noise = np.random.default_rng(1).normal(0, 0.1, 200)
    comparison = compare(scores(0.6 + noise), scores(0.5 + noise[::-1]))
    assert comparison.difference == pytest.approx(0.1)
    assert comparison.low < 0.1 < comparison.high
    assert comparison.low > 0
    assert comparison.p < 0.01


def test_the_p_value_counts_both_directions():
    assert compare(scores([1, 2]), scores([0, 0]), resamples=99).p == pytest.approx(0.02)
    # One draw of two pictures in four holds only the one where the first system is behind.
    comparison = compare(scores([3, 0]), scores([0, 1]), resamples=20000)
    assert comparison.p == pytest.approx(2 / 4, abs=0.02)


def test_no_difference_is_not_found():
    values = np.random.default_rng(2).random(100)
    comparison = compare(scores(values), scores(values))
    assert (comparison.difference, comparison.low, comparison.high, comparison.p) == (0, 0, 0, 1)


def test_swapping_the_systems_turns_the_interval_round():
    random = np.random.default_rng(3)
    one, other = scores(random.random(50)), scores(random.random(50))
    there, back = compare(one, other), compare(other, one)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert there.p == back.p


def test_the_interval_covers_as_often_as_it_says():
    # 95 % intervals of a true difference of 0: about 5 in 100 miss it.
    random = np.random.default_rng(4)
    missed = 0
    for _ in range(200):
        comparison = compare(scores(random.normal(size=60)), scores(random.normal(size=60)), 200)
        missed += not comparison.low <= 0 <= comparison.high
    assert 2 <= missed <= 25


def test_the_interval_of_the_mean_is_as_wide_as_theory_says():
    values = np.random.default_rng(5).normal(size=400)
    comparison = compare(scores(values), scores(np.zeros(400)), 4000)
    assert comparison.high - comparison.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_the_same_every_time_and_whatever_the_block_size(monkeypatch):
    random = np.random.default_rng(6)
    one, other = scores(random.random(30)), scores(random.random(30))
    first = compare(one, other)
    again = compare(one, other)
    assert (again.low, again.high, again.p) == pytest.approx((first.low, first.high, first.p))
    assert compare(one, other, seed=1) != first
    monkeypatch.setattr("sightline.metrics.bootstrap._CELLS", 100)
    again = compare(one, other)
    assert (again.low, again.high, again.p) == pytest.approx((first.low, first.high, first.p))


def test_bleu_is_resampled_by_its_counts():
    # Means of per-image BLEU-4 are near 0 here; the corpus statistic is not.
    candidates = ["a b c d e f", "g h i", "a b c x y z"]
    references = [["a b c d e f"], ["g h i"], ["a b c d e f"]]
    better, worse = bleu(candidates, references)[3], bleu(["q"] * 3, references)[3]
    comparison = compare(better, worse)
    assert comparison.high > 0.9
    assert comparison.difference == better.corpus - worse.corpus


def test_what_is_undefined_has_neither_interval_nor_p():
    defined, undefined = shares([0.5, 0.25]), shares([np.nan, np.nan])
    for pair in ((defined, undefined), (undefined, defined), (undefined, undefined)):
        comparison = compare(*pair)
        assert np.isnan(
            [comparison.difference, comparison.low, comparison.high, comparison.p]
        ).all()


def test_draws_that_miss_the_only_defined_picture_speak_for_neither_system():
    ours, theirs = [np.nan] * 9, [np.nan] * 9
    comparison = compare(shares([0.75, *ours]), shares([0.25, *theirs]))
    assert (comparison.difference, comparison.low, comparison.high) == (0.5, 0.5, 0.5)
    # A draw of ten pictures misses a given one with probability 0.9 ** 10.
    assert comparison.p == pytest.approx(2 * 0.9**10, abs=0.06)


def shares(values):
    """A score that is the mean over the pictures on which it is defined."""
    return category_scores("x", [{"all": 0.0, "size": value} for value in values])[-1]


def test_different_metrics_or_pictures_are_refused():
    with pytest.raises(DataError, match="cannot compare"):
        compare(scores([1, 2]), scores([1, 2, 3]))
    with pytest.raises(DataError, match="cannot compare"):
        compare(scores([1, 2]), Score("y", 1.5, np.array([1.0, 2.0])))


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(4).normal(0.3, 0.1, 400)
    low, high = interval(scores(values))
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.001)


def test_the_interval_of_what_is_undefined_is_undefined():
    assert np.isnan(interval(scores([np.nan, np.nan]))).all()
