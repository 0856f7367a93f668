"""Torch's recurrent cells and layers: the same numbers, and every account closes."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from sightline.errors import NotApplicableError
from sightline.explain.gradient_mode import GradientMode
from sightline.explain.lrp.mode import LRPMode
from sightline.models.layers import lstm


class Cells(nn.Module):
    """A cell over the words of a caption, as a captioner's step uses it."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, words: Tensor) -> Tensor:
        state = None
        for word in words.unbind(1):
            state = self.cell(word, state)
        return state[0] if isinstance(state, tuple) else state


class Layers(nn.Module):
    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, words: Tensor) -> Tensor:
        if self.layers.batch_first:
            return self.layers(words)[0].flatten(1)
        return self.layers(words.transpose(0, 1))[0].transpose(0, 1).flatten(1)


NETWORKS = {
    "gru_cell": lambda: Cells(nn.GRUCell(3, 4)),
    "gru_cell_without_bias": lambda: Cells(nn.GRUCell(3, 4, bias=False)),
    "lstm_cell": lambda: Cells(nn.LSTMCell(3, 4)),
    "rnn_cell": lambda: Cells(nn.RNNCell(3, 4)),
    "gru": lambda: Layers(nn.GRU(3, 4, batch_first=True)),
    "lstm": lambda: Layers(nn.LSTM(3, 4, 2, batch_first=True)),
    "lstm_without_bias": lambda: Layers(nn.LSTM(3, 4, bias=False)),
    "lstm_both_ways": lambda: Layers(nn.LSTM(3, 4, 2, bidirectional=True)),
    "rnn": lambda: Layers(nn.RNN(3, 4, 2, bidirectional=True, batch_first=True)),
}


@pytest.fixture(params=NETWORKS)
def network(request) -> nn.Module:
    torch.manual_seed(0)
    network = NETWORKS[request.param]().double().requires_grad_(False)
    for parameter in network.parameters():
        parameter.mul_(2)
    return network


@pytest.fixture
def words() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 5, 3).double()


@pytest.mark.parametrize("make", [GradientMode, lambda: LRPMode(2, dtype=torch.float64)])
def test_a_mode_changes_no_number(make, network, words) -> None:
    words.requires_grad_()
    plain = network(words)
    with make():
        moded = network(words)
    torch.testing.assert_close(moded, plain, rtol=0, atol=1e-12)


def test_gradients_are_torchs_own(network, words) -> None:
    words.requires_grad_()
    with GradientMode():
        moded = network(words)
    weights = torch.randn_like(moded)
    one, other = (torch.autograd.grad(y, words, weights)[0] for y in (moded, network(words)))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("epsilon", [0.0, 0.01])
def test_the_account_closes(epsilon: float, network, words) -> None:
    words.requires_grad_()
    mode = LRPMode(2, epsilon, torch.float64)
    with mode:
        y = network(words)
    c, absorbed = torch.autograd.grad(y, [words, mode.absorbed], torch.ones_like(y))
    relevance = (c * words).flatten(1).sum(1)
    torch.testing.assert_close(relevance + absorbed.sum(0), y.sum(1), rtol=0, atol=1e-9)
    assert (relevance.abs() > 1e-6).all()
    assert bool(absorbed[1].any()) == bool(epsilon)


def test_gates_get_nothing(words) -> None:
    """An LSTM cell of torch's is explained as our own is (Arras et al. 2017)."""
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4).double().requires_grad_(False)
    order = torch.tensor([0, 1, 3, 2])  # torch's gates are i, f, g, o, and ours i, f, o, g

    def ours(words: Tensor) -> Tensor:
        hidden = memory = words.new_zeros(2, 4)
        for word in words.unbind(1):
            sums = nn.functional.linear(word, cell.weight_ih, cell.bias_ih)
            sums = sums + nn.functional.linear(hidden, cell.weight_hh, cell.bias_hh)
            gates = sums.unflatten(-1, (4, 4))[:, order].flatten(1)
            hidden, memory = lstm(gates, memory)
        return hidden

    found = []
    for network in (Cells(cell), ours):
        x, mode = words.clone().requires_grad_(), LRPMode(2, dtype=torch.float64)
        with mode:
            y = network(x)
        found.append(torch.autograd.grad(y.sum(), x)[0])
    torch.testing.assert_close(*found)


def test_what_has_no_plain_form_is_refused_by_name(words) -> None:
    words.requires_grad_()
    packed = pack_sequence([words[0], words[1, :3]])
    gru, projected = nn.GRU(3, 4).double(), nn.LSTM(3, 4, proj_size=2).double()
    with LRPMode(), pytest.raises(NotApplicableError, match="no rule for 'gru of packed seque"):
        gru(packed)
    with LRPMode(), pytest.raises(NotApplicableError, match="no rule for 'lstm with projections'"):
        projected(words)
    plain = gru(packed)[0].data, projected(words)[0]
    with GradientMode():  # gradients need no rule
        moded = gru(packed)[0].data, projected(words)[0]
    torch.testing.assert_close(moded, plain)
