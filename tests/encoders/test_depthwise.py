"""The gradient of depthwise convolutions: torch's own, faster."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sightline.encoders.convolutions import DepthwiseConv2d

CHANNELS = 6


def both(kernel, stride=1, padding=0, bias=True):
    ours = DepthwiseConv2d(
        CHANNELS, CHANNELS, kernel, stride, padding, groups=CHANNELS, bias=bias
    ).to(memory_format=torch.channels_last)
    plain = nn.Conv2d(CHANNELS, CHANNELS, kernel, stride, padding, groups=CHANNELS, bias=bias)
    plain.load_state_dict(ours.state_dict())
    return ours, plain


def gradients(layer, x, weights):
    return torch.autograd.grad(layer(x), [x, *layer.parameters()], weights)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kernel", "padding"), [(5, 2), (5, 0), (4, 1), ((3, 7), (1, 3)), (3, 1)])
def test_the_gradient_is_that_of_a_plain_convolution(kernel, padding, bias):
    torch.manual_seed(0)
    ours, plain = both(kernel, padding=padding, bias=bias)
    x = torch.randn(3, CHANNELS, 9, 11, requires_grad=True)
    weights = torch.randn_like(plain(x))
    for one, other in zip(gradients(ours, x, weights), gradients(plain, x, weights), strict=True):
        torch.testing.assert_close(one, other)


def test_wide_kernels_learn_from_narrow_ones():
    """oneDNN has a fast gradient of the weights of kernels up to three columns wide."""
    ours, _ = both(5, padding=2)
    x = torch.randn(2, CHANNELS, 9, 9, requires_grad=True)
    with _Gradients() as seen:
        ours(x).sum().backward()
    assert seen.widths == [3, 3]


def test_strides_keep_the_gradient_of_torch():
    ours, plain = both(5, stride=2)
    x = torch.randn(2, CHANNELS, 11, 11, requires_grad=True)
    weights = torch.randn_like(plain(x))
    with _Gradients() as seen:
        one = gradients(ours, x, weights)
    assert seen.widths == [5]
    torch.testing.assert_close(one, gradients(plain, x, weights))


def test_only_what_is_asked_for_is_computed():
    ours, _ = both(5, padding=2)
    with _Gradients() as seen:
        ours(torch.randn(2, CHANNELS, 9, 9)).sum().backward()  # no gradient of the picture
    assert seen.inputs == 0
    ours.requires_grad_(False)
    with _Gradients() as seen:
        ours(torch.randn(2, CHANNELS, 9, 9, requires_grad=True)).sum().backward()
    assert seen.widths == []


class _Gradients(TorchDispatchMode):
    """Notes the widths of the kernels whose gradient is taken, and how often that of an input."""

    def __init__(self):
        super().__init__()
        self.widths, self.inputs = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.convolution_backward.default:
            for_input, for_weight, _ = args[-1]
            self.inputs += for_input
            self.widths += [args[2].shape[3]] * for_weight
        return func(*args, **(kwargs or {}))


def test_a_layer_of_16_bits_computes_in_16_bits():
    layer = DepthwiseConv2d(2, 2, 5, padding=2, groups=2).bfloat16()
    output = layer(torch.ones(1, 2, 6, 6, dtype=torch.bfloat16))
    assert output.dtype == torch.bfloat16
    output.sum().backward()
    assert layer.weight.grad is not None
