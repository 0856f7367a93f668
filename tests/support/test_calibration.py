"""Calibration: words by tenths of support, against known answers."""

import numpy as np
import pytest

from sightline.support.calibration import calibrate


def test_every_word_is_counted_once() -> None:
    bins = calibrate(np.array([0.0, 0.05, 0.999, 1.0]), np.array([False, True, True, True]))
    assert [(each["words"], each["right"]) for each in bins] == [(2, 0.5), (2, 1.0)]
    assert [(each["low"], each["high"]) for each in bins] == [(0, 0.1), (0.9, 1)]
    assert "interval" not in bins[0]
    assert calibrate(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64)) == []


def test_words_that_are_as_often_right_as_they_say_lie_on_the_line() -> None:
    random = np.random.default_rng(0)
    support = random.uniform(size=20_000)
    right = random.uniform(size=20_000) < support
    bins = calibrate(support, right, np.arange(20_000))
    assert len(bins) == 10
    for n, each in enumerate(bins):
        assert each["support"] == pytest.approx(n / 10 + 0.05, abs=0.003)
        assert each["right"] == pytest.approx(each["support"], abs=0.03)
    inside = [each["interval"]["low"] < each["support"] < each["interval"]["high"] for each in bins]
    assert sum(inside) >= 8


def test_an_interval_is_over_pictures() -> None:
    right = np.arange(400) % 4 > 0  # three of four
    support = np.full(400, 0.75)
    (alone,) = calibrate(support, right, np.arange(400))
    half = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    assert alone["interval"]["low"] == pytest.approx(0.75 - half, abs=0.006)
    assert alone["interval"]["high"] == pytest.approx(0.75 + half, abs=0.006)
    # Four words of a picture that are right or wrong together tell as much as one.
    (together,) = calibrate(support, np.sort(right), np.arange(400) // 4)
    assert together["interval"]["low"] == pytest.approx(0.75 - 2 * half, abs=0.012)
    assert together["right"] == 0.75
