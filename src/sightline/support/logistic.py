"""Logistic regression with a penalty on its weights, in a few lines of NumPy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Logistic(NamedTuple):
    """P(right | x) = σ(Σ weights (x - mean) / scale + bias)."""

    mean: Floats  # (k,)
    scale: Floats  # (k,)
    weights: Floats  # (k,)
    bias: float

    def logits(self, x: Floats) -> Floats:
        """Log-odds `(n,)` of rows `(n, k)`."""
        return np.asarray((x - self.mean) / self.scale @ self.weights + self.bias)

    def predict(self, x: Floats) -> Floats:
        """Probabilities `(n,)` of rows `(n, k)`."""
        return sigmoid(self.logits(x))


def fit_logistic(x: Floats, right: NDArray[np.bool_], penalty: float = 1.0) -> Logistic:
    """The likeliest weights under the penalty ½ `penalty` ‖weights‖², by Newton's method.

    Features are standardised first, so that the penalty treats them alike; the bias is free, so
    that probabilities are right on average. A feature that never changes weighs nothing.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = fit_logistic(x, np.array([False, True, False, True]))
    >>> float(fitted.predict(x).sum().round(6)), bool(fitted.weights[0] > 0)
    (2.0, True)
    """
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    rows = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    penalties = np.append(np.full(x.shape[1], penalty), 0.0)
    weights = np.zeros(rows.shape[1])
    for _ in range(100):
        p = sigmoid(rows @ weights)
        gradient = rows.T @ (p - right) + penalties * weights
        if np.abs(gradient).max() < 1e-9:
            break
        curvature = (rows.T * (p * (1 - p))) @ rows + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        weights -= step * min(1.0, 2.0 / np.abs(step).max())  # (far steps may overshoot)
    return Logistic(mean, scale, weights[:-1], float(weights[-1]))


def held_out_logits(
    x: Floats, right: NDArray[np.bool_], folds: NDArray[np.int64], penalty: float = 1.0
) -> Floats:
    """The log-odds of each row by weights that were fitted without its fold.

    A fold's weights are penalised in proportion to the rows that they are fitted to. Otherwise they
    would be smaller than weights fitted to all rows, and a threshold set on these log-odds would
    not hold for those.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> logits = held_out_logits(x, np.array([False, True, False, True]), np.array([0, 0, 1, 1]))
    >>> (logits > 0).tolist()
    [False, False, True, True]
    """
    logits = np.empty(len(x))
    for fold in np.unique(folds):
        held_out = folds == fold
        share = float(np.mean(~held_out))
        fitted = fit_logistic(x[~held_out], right[~held_out], share * penalty)
        logits[held_out] = fitted.logits(x[held_out])
    return logits


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))
