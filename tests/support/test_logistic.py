"""Logistic regression: it is at the minimum, and what it gives are probabilities."""

import numpy as np
import pytest

from sightline.support.logistic import fit_logistic, sigmoid


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, -2.0]
    z = (x - x.mean(0)) / x.std(0) @ [1.0, -2.0, 0.5] + 0.7
    return x, random.random(300) < sigmoid(z)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_the_gradient_is_nothing_at_what_it_finds(data, penalty):
    x, right = data
    found = fit_logistic(x, right, penalty)
    error = found.predict(x) - right
    gradient = (x - found.mean).T @ error / found.scale + penalty * found.weights
    np.testing.assert_allclose(gradient, 0, atol=1e-7)
    assert abs(error.sum()) < 1e-7  # right on average


def test_weights_are_near_those_that_made_the_data_and_shrink_with_the_penalty(data):
    found = fit_logistic(*data)
    np.testing.assert_allclose([*found.weights, found.bias], [1.0, -2.0, 0.5, 0.7], atol=0.5)
    assert np.abs(fit_logistic(*data, penalty=100.0).weights).sum() < np.abs(found.weights).sum()


def test_what_can_be_told_apart_exactly_has_finite_weights():
    found = fit_logistic(np.array([[0.0, 7.0], [1.0, 7.0]]), np.array([False, True]))
    assert np.isfinite(found.weights).all()
    assert found.weights[1] == 0  # it never changes
