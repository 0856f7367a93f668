import pytest
import torch

from sightline.models.layers import Dropout, additive_energy


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


def test_additive_energy_and_its_gradient_are_those_of_its_definition():
    torch.manual_seed(0)
    sizes = [(2, 4, 5), (2, 3, 5), (5,)]
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    keys, query, vector = inputs
    plain = (torch.tanh(keys[:, None] + query[:, :, None]) * vector).sum(-1)
    torch.testing.assert_close(additive_energy(*inputs), plain)
    assert torch.autograd.gradcheck(additive_energy, inputs)
    # Explanations run backward several times through one forward pass.
    energy, weights = additive_energy(*inputs), torch.randn(2, 3, 4, dtype=torch.float64)
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
