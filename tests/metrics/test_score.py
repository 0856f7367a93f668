import numpy as np
import pytest

from sightline.metrics import Score


def test_a_mean_is_resampled_as_a_mean():
    score = Score("x", 0.5, np.array([0.0, 1.0, 0.5]))
    weights = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [2.0, 1.0, 0.0]])
    assert score.resampled(weights).tolist() == pytest.approx([0.5, 1.0, 1 / 3])


def test_a_corpus_statistic_is_resampled_from_its_sums():
    statistics = np.array([[1.0, 2.0], [0.0, 6.0]])  # matches and tries
    score = Score("x", 1 / 8, np.array([0.5, 0.0]), statistics, lambda s: s[..., 0] / s[..., 1])
    assert score.resampled(np.array([[1.0, 1.0], [2.0, 0.0]])).tolist() == [1 / 8, 1 / 2]
