import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sightline.models.layers import (
    Dropout,
    additive_energy,
    barrier,
    initialise_recurrence,
    lstm,
    masked_mean,
)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    x = torch.full((200_000,), 2.0, requires_grad=True)
    y = Dropout(p).train()(x)
    assert float((y == 0).float().mean()) == pytest.approx(p, abs=0.01)
    assert y[y != 0].unique().tolist() == pytest.approx([2 / (1 - p)])
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach() / 2)


def test_dropout_does_nothing_outside_training():
    x = torch.randn(50)
    assert Dropout(0.9).eval()(x) is x


@pytest.mark.parametrize("rectified", [False, True])
def test_additive_energy_and_its_gradient_are_those_of_its_definition(rectified):
    torch.manual_seed(0)
    squash = torch.relu if rectified else torch.tanh
    sizes = [(2, 4, 5), (2, 3, 5), (5,)]
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    keys, query, vector = inputs
    plain = (squash(keys[:, None] + query[:, :, None]) * vector).sum(-1)
    torch.testing.assert_close(additive_energy(*inputs, rectified), plain)
    assert torch.autograd.gradcheck(additive_energy, (*inputs, rectified))
    # Explanations run backward several times through one forward pass.
    energy, weights = additive_energy(*inputs, rectified), torch.randn(2, 3, 4, dtype=torch.float64)
    once = torch.autograd.grad(energy, inputs, weights, retain_graph=True)
    again = torch.autograd.grad(energy, inputs, weights)
    for first, second in zip(once, again, strict=True):
        assert torch.equal(first, second)


def test_additive_energy_in_pieces_is_that_of_the_whole():
    """Of sizes where every picture is a piece of its own."""
    torch.manual_seed(0)
    sizes = [(3, 300, 320), (3, 3, 320), (320,)]
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    keys, query, vector = inputs
    plain = (torch.tanh(keys[:, None] + query[:, :, None]) * vector).sum(-1)
    energy, weights = additive_energy(*inputs), torch.randn(3, 3, 300, dtype=torch.float64)
    torch.testing.assert_close(energy, plain)
    for ours, theirs in zip(
        torch.autograd.grad(energy, inputs, weights),
        torch.autograd.grad(plain, inputs, weights),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("largest", [1.0, 100.0, 1000.0])
def test_energies_of_32_bits_take_no_tanh_and_are_the_same_with_their_gradient(largest):
    """Of keys however large; where queries are large, too, by tanh after all."""
    torch.manual_seed(0)
    keys, query, vector = largest * torch.randn(3, 40, 64), torch.randn(3, 5, 64), torch.randn(64)
    given = [x.requires_grad_() for x in (keys, query, vector)]
    exact = [x.detach().double().requires_grad_() for x in given]
    expected = torch.tanh(exact[0][:, None] + exact[1][:, :, None]) @ exact[2]
    weights = torch.randn(3, 5, 40)
    with _Squashed() as count:
        energy = additive_energy(*given)
        gradients = torch.autograd.grad(energy, given, weights)
    assert count.count == 0
    torch.testing.assert_close(energy.double(), expected, rtol=0, atol=2e-5)
    for ours, theirs in zip(
        gradients, torch.autograd.grad(expected, exact, weights.double()), strict=True
    ):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)

    opposite = largest * torch.randn(3, 5, 64)
    expected = torch.tanh(keys[:, None] + opposite[:, :, None]) @ vector
    with torch.inference_mode():
        energy = additive_energy(keys, opposite, vector)
    torch.testing.assert_close(energy, expected, rtol=0, atol=2e-5)


def test_lstm_is_that_of_torch_with_its_gates_in_another_order():
    torch.manual_seed(0)
    reference = nn.LSTMCell(5, 3)
    x, hidden, cell = torch.randn(4, 5), torch.randn(4, 3), torch.randn(4, 3)
    gates = x @ reference.weight_ih.T + reference.bias_ih
    gates = gates + hidden @ reference.weight_hh.T + reference.bias_hh
    i, f, g, o = gates.chunk(4, -1)
    outputs = lstm(torch.cat([i, f, o, g], -1), cell)
    for one, other in zip(outputs, reference(x, (hidden, cell)), strict=True):
        torch.testing.assert_close(one, other)


def test_a_fresh_recurrence_remembers_and_is_orthogonal():
    linear = nn.Linear(3, 2 + 12)
    initialise_recurrence(linear)
    assert linear.bias.tolist() == [0.0] * 5 + [1.0] * 3 + [0.0] * 6
    for gate in linear.weight[2:].chunk(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(3), rtol=0, atol=1e-6)


def test_regions_that_are_not_there_have_no_share():
    mask = torch.tensor([[True, False, True], [False, False, True]])
    vectors = torch.tensor([[[1.0], [50.0], [3.0]], [[50.0], [50.0], [7.0]]])
    assert masked_mean(vectors, mask).tolist() == [[2.0], [7.0]]
    attention = (torch.zeros(2, 3) + barrier(mask, vectors)).softmax(-1)
    assert attention.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(("device", "pieces"), [("cpu", 3), ("meta", 1)])
def test_additive_energy_is_cut_to_the_cache_of_a_cpu_alone(device, pieces):
    sizes, kind = [(3, 300, 320), (3, 3, 320), (320,)], torch.float64
    inputs = [torch.zeros(size, dtype=kind, device=device, requires_grad=True) for size in sizes]
    with _Squashed() as squashed:
        energy = additive_energy(*inputs)
        assert squashed.count == pieces
        energy.sum().backward()
    assert squashed.count == 2 * pieces
    assert energy.shape == (3, 3, 300)


def test_energies_under_autocast_are_those_of_32_bits():
    torch.manual_seed(0)
    keys, query, vector = torch.randn(2, 4, 8), torch.randn(2, 3, 8), torch.randn(8)
    given = [x.requires_grad_() for x in (keys.bfloat16(), query.bfloat16(), vector)]
    with torch.autocast("cpu", torch.bfloat16):
        energy = additive_energy(*given)
    exact = torch.tanh(given[0].float()[:, None] + given[1].float()[:, :, None]) @ vector
    torch.testing.assert_close(energy, exact)
    kinds = [x.dtype for x in torch.autograd.grad(energy.sum(), given)]
    assert kinds == [torch.bfloat16, torch.bfloat16, torch.float32]


class _Squashed(TorchDispatchMode):
    """Counts how often a tanh is taken."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten.tanh_.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("rectified", [False, True])
def test_the_gradient_of_energies_has_no_silent_gradient(rectified):
    keys = torch.randn(1, 3, 2, requires_grad=True)
    energy = additive_energy(keys, torch.randn(1, 2, 2), torch.randn(2), rectified)
    (slope,) = torch.autograd.grad(energy.square().sum(), keys, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


def test_energies_of_16_bits_stay_so_without_autocast():
    given = (torch.randn(1, 3, 2), torch.randn(1, 2, 2), torch.randn(2))
    narrow = [x.bfloat16() for x in given]
    energy = additive_energy(*narrow)
    assert energy.dtype == torch.bfloat16
    torch.testing.assert_close(energy.float(), additive_energy(*given), rtol=0.02, atol=0.05)
