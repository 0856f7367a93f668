"""Agreement of weights over regions, against definitions written out."""

from itertools import combinations

import numpy as np
import pytest

from sightline.evaluation.distributions import jensen_shannon, kendall_tau


def by_pairs(one, other):
    pairs = list(combinations(range(len(one)), 2))
    signs = [(np.sign(one[i] - one[j]), np.sign(other[i] - other[j])) for i, j in pairs]
    concordant = sum(a * b > 0 for a, b in signs)
    discordant = sum(a * b < 0 for a, b in signs)
    size = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return (concordant - discordant) / size**0.5


def test_kendall_counts_pairs():
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = random.integers(0, 5, (2, 12)).astype(float)  # with ties
        assert kendall_tau(one, other) == pytest.approx(by_pairs(one, other))
    assert kendall_tau(one, one) == pytest.approx(1)
    assert kendall_tau(one, -one) == pytest.approx(-1)
    assert kendall_tau(one, np.ones(12)) == 0


def test_jensen_shannon():
    random = np.random.default_rng(0)
    one, other = random.dirichlet(np.ones(6), (2, 3))
    middle = (one + other) / 2
    expected = [
        0.5 * np.sum(a * np.log(a / m)) + 0.5 * np.sum(b * np.log(b / m))
        for a, b, m in zip(one, other, middle, strict=True)
    ]
    np.testing.assert_allclose(jensen_shannon(one, other), expected)
    np.testing.assert_allclose(jensen_shannon(one, one), 0, atol=1e-12)
    np.testing.assert_allclose(jensen_shannon(one, other), jensen_shannon(other, one))
