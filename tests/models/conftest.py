"""Paper 4, eq. 1-7, number by number in plain Python: what its captioners are checked against."""

import math
from types import SimpleNamespace

import pytest
import torch

from sightline.regions import Regions


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def times(matrix, vector):
    """A matrix times a vector; of a bias there is nothing."""
    return [sum(w * x for w, x in zip(row, vector, strict=True)) for row in matrix]


def plus(*vectors):
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def relu(vector):
    return [max(x, 0.0) for x in vector]


def lstm(sums, cell):
    """Gates in the order input, forget, output, proposal."""
    n = len(cell)
    new_hidden, new_cell = [], []
    for k in range(n):
        i, f, o = (sigmoid(sums[gate * n + k]) for gate in range(3))
        new_cell.append(f * cell[k] + i * math.tanh(sums[3 * n + k]))
        new_hidden.append(o * math.tanh(new_cell[k]))
    return new_hidden, new_cell


def top_down(sums, cell):
    """The LSTM and the sentinel (eq. 1) of what enters the sentinel's gate and the LSTM's."""
    n = len(cell)
    hidden, cell = lstm(sums[n:], cell)
    return hidden, cell, [sigmoid(sums[k]) * math.tanh(cell[k]) for k in range(n)]


def attend(module, regions, hidden, sentinel):
    """ĉ, α and β (eq. 2-7)."""
    w_v, w_g, w_s = (
        part.weight.tolist() for part in (module.key, module.query, module.sentinel_key)
    )
    w_a = module.score.tolist()

    def energy(matrix, vector):
        sums = plus(times(matrix, vector), times(w_g, hidden))
        return sum(w * math.tanh(x) for w, x in zip(w_a, sums, strict=True))

    a = [energy(w_v, region) for region in regions]
    b = energy(w_s, sentinel)
    alphas = [math.exp(e) / sum(map(math.exp, a)) for e in a]
    beta = math.exp(b) / (sum(map(math.exp, a)) + math.exp(b))
    context = plus(*([w * x for x in v] for w, v in zip(alphas, regions, strict=True)))
    mixed = [(1 - beta) * c + beta * s for c, s in zip(context, sentinel, strict=True)]
    return mixed, alphas, beta


@pytest.fixture
def by_hand():
    """The equations of paper 4."""
    return SimpleNamespace(
        times=times, plus=plus, relu=relu, lstm=lstm, top_down=top_down, attend=attend
    )


@pytest.fixture
def tell():
    """Give every parameter of a model random numbers large enough that each of them tells."""

    def fill(model):
        torch.manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.7)
        return model.double().eval()

    return fill


@pytest.fixture
def four_regions():
    """One picture; the last of its four regions is not there."""
    torch.manual_seed(1)
    mask = torch.tensor([[True, True, True, False]])
    return Regions(torch.randn(1, 4, 7).double(), mask, torch.zeros(1, 4, 4))
