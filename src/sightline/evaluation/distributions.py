"""Weights over regions: how alike two of them are, and how far one is spread."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def kendall_tau(one: Floats, other: Floats) -> float:
    """Kendall's τ-b, with ties counted as Kendall (1945) does; 0 if either are all the same.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.3333333333333333
    """
    above = np.triu_indices(len(one), 1)
    signs = [np.sign(x[:, None] - x[None, :])[above] for x in (one, other)]
    untied = [np.count_nonzero(sign) for sign in signs]
    if not all(untied):
        return 0.0
    return float((signs[0] * signs[1]).sum() / np.sqrt(untied[0] * untied[1]))


def jensen_shannon(one: Floats, other: Floats) -> Floats:
    """The divergence of distributions `(..., L)` in nats (paper 0, eq. 13).

    >>> round(float(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]))), 6)  # log 2
    0.693147
    """
    middle = (one + other) / 2
    return np.asarray((_divergence(one, middle) + _divergence(other, middle)) / 2)


def entropy(weights: Sequence[float]) -> float:
    """Of weights, made to sum to one, in bits: 0 where all is on one region.

    >>> entropy([0.5, 0.5, 0.0])
    1.0
    """
    positive = np.array([weight for weight in weights if weight > 0])
    shares = positive / max(positive.sum(), 1e-12)
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def _divergence(one: Floats, other: Floats) -> Floats:
    """KL, where nothing times the logarithm of nothing is nothing."""
    safe = np.where(one > 0, one, 1.0)
    return np.asarray((one * np.log(safe / np.where(one > 0, other, 1.0))).sum(-1))
