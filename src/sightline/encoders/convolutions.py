"""Convolutions, with the padding before them and the rectifiers after them in the same pass."""

import platform
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import has_torch_function

from sightline.encoders.activations import ReLU, ReLU6


class SamePadding(nn.Module):
    """TensorFlow's SAME padding before a strided convolution: one side gets the odd pixel.

    Half a kernel on both sides would shift the grid by a pixel at every stride, and the network
    was not trained so.
    """

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        (top, bottom), (left, right) = self.amounts(x.shape[2]), self.amounts(x.shape[3])
        return F.pad(x, (left, right, top, bottom))

    def amounts(self, length: int) -> tuple[int, int]:
        """How many pixels are put before and after a side of that length."""
        total = max((-(-length // self.stride) - 1) * self.stride + self.kernel - length, 0)
        return total // 2, total - total // 2


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of each channel by itself, learnt in 32 bits also where autocast is on.

    PyTorch's gradient of it is slow on a CPU, in bfloat16 above all: like this, a step of the
    trained stages takes a third of the time (`python benchmarks/encoder_gradient.py`).

    >>> layer = DepthwiseConv2d(2, 2, 1, groups=2)
    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     print(layer(torch.ones(1, 2, 1, 1)).dtype)
    torch.float32
    """

    def forward(self, input: Tensor) -> Tensor:
        narrow = self.weight.dtype in (torch.bfloat16, torch.float16)
        plain = input.device.type != "cpu" or not torch.is_grad_enabled() or narrow
        if plain or has_torch_function((input,)):
            return super().forward(input)
        with torch.autocast("cpu", enabled=False):
            x = input if input.dtype == torch.float64 else input.float()
            wide = _is_plain(self) and self.kernel_size[1] > _WIDTH
            if not (wide and self.stride == self.dilation == (1, 1) and self.weight.requires_grad):
                return super().forward(x)
            convolved: Tensor = _Depthwise.apply(  # type: ignore[no-untyped-call]
                x, self.weight, self.bias, self.padding
            )
            return convolved


# Of kernels up to this width, oneDNN has a fast gradient.
_WIDTH = 3


class _Depthwise(torch.autograd.Function):
    """The gradient of a wide kernel, from those of narrow ones that together cover it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.padding, ctx.has_bias = padding, bias is not None
        return F.conv2d(x, weight, bias, padding=padding, groups=len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (rows, columns), for_x, for_bias = ctx.padding, None, None
        if ctx.needs_input_grad[0]:
            for_x, *_ = _gradients(gradient, x, weight, ctx.padding, [True, False, False])
        if ctx.has_bias:
            for_bias = gradient.sum((0, 2, 3))
        for_weight, last = torch.empty_like(weight), weight.shape[3] - _WIDTH
        for first in {min(column, last) for column in range(0, weight.shape[3], _WIDTH)}:
            # What these columns of the kernel see: cut off or padded on both sides.
            left = columns - first
            seen = F.pad(x, (left, gradient.shape[3] + _WIDTH - 1 - left - x.shape[3]))
            at = slice(first, first + _WIDTH)
            narrow = _gradients(gradient, seen, weight[..., at], (rows, 0), [False, True, False])
            for_weight[..., at] = narrow[1]
        return for_x, for_weight, for_bias, None


def _gradients(
    gradient: Tensor, x: Tensor, weight: Tensor, padding: Any, which: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the input, the weights and the biases of a depthwise convolution."""
    how = ((1, 1), padding, (1, 1), False, (0, 0), len(weight), which)
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, *how
    )
    return gradients


def through(x: Tensor, parts: Sequence[nn.Module], added: Tensor | None = None) -> Tensor:
    """What comes out of parts of a network, one after another, plus what is `added`.

    In `torch.inference_mode()` on an x86 processor, oneDNN pads, convolves, and rectifies or adds
    in one pass, with weights that it has laid out once, in 32 bits or, under autocast, in
    bfloat16. Numbers are the same but for their last bits. Gradients and explanations cannot run
    in inference mode, so they go part by part.

    >>> through(torch.tensor([-1.0, 2.0]), [nn.ReLU(), nn.Identity()], torch.ones(2))
    tensor([1., 3.])
    """
    if not _can_fuse(x):
        for part in parts:
            x = part(x)
        return x if added is None else x + added
    if torch.is_autocast_enabled("cpu"):
        x, added = x.bfloat16(), None if added is None else added.bfloat16()
    rest = deque(part for part in parts if not isinstance(part, nn.Identity))
    while rest:
        part = rest.popleft()
        padding = None
        if isinstance(part, SamePadding) and rest and _is_plain(rest[0], padded=False):
            padding, part = part, rest.popleft()
        if not _is_plain(part):
            x = part(x)
            continue
        rectifier = type(rest.popleft()) if rest and type(rest[0]) in _RECTIFIERS else None
        weight, margins = _laid_out(part, padding, x)
        bias = None if part.bias is None else part.bias.to(x.dtype)
        how = (weight, bias, margins, part.stride, part.dilation, part.groups)
        if rectifier is None and not rest and added is not None:
            total: Tensor = _FUSED.binary(x, added, *how, "add", 1.0, None, [], None)
            return total
        x = _FUSED(x, *how, *(_RECTIFIERS[rectifier] if rectifier else ("none", [])), "")
    return x if added is None else x + added


_FUSED: Any = torch.ops.mkldnn._convolution_pointwise
_RECTIFIERS: dict[type, tuple[str, list[float]]] = {
    ReLU: ("relu", []),
    ReLU6: ("hardtanh", [0.0, 6.0]),
}


def _can_fuse(x: Tensor) -> bool:
    return (
        torch.is_inference_mode_enabled()
        and x.device.type == "cpu"
        and x.numel() > 0
        and platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and _has_numbers(x)
        and not has_torch_function((x,))
    )


def _has_numbers(x: Tensor) -> bool:
    """Whether oneDNN computes in the number format that `x` has, or that autocast gives it."""
    if not torch.is_autocast_enabled("cpu"):
        return x.dtype == torch.float32
    return (
        x.dtype in (torch.float32, torch.bfloat16)
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


def _is_plain(part: nn.Module, padded: bool = True) -> TypeGuard[nn.Conv2d]:
    """Whether a part is a convolution with zeros around its input, or with nothing."""
    return (
        type(part) in (nn.Conv2d, DepthwiseConv2d)
        and isinstance(part, nn.Conv2d)
        and part.padding_mode == "zeros"
        and not isinstance(part.padding, str)
        and (padded or (not any(part.padding) and part.dilation == (1, 1)))
    )


class _LaidOut(NamedTuple):
    """Weights in oneDNN's order of blocks, and what they were made from."""

    weight: Tensor
    origin: Tensor
    version: tuple[int, int, torch.dtype]
    zeros: tuple[int, ...]


# Beside the modules, not in them: copies, files and other devices have no use for it. One picture
# alone takes another order than a batch.
_LAID_OUT: tuple[WeakKeyDictionary[nn.Module, _LaidOut], ...] = (
    WeakKeyDictionary(),
    WeakKeyDictionary(),
)


def _laid_out(part: nn.Conv2d, padding: SamePadding | None, x: Tensor) -> tuple[Tensor, Any]:
    """The weights of a convolution for oneDNN, and how much it is to pad on both sides.

    Where one side gets more, it pads as much on the other, and the kernel begins with zeros.
    """
    margins, zeros = part.padding, (0, 0)
    if padding is not None:
        (top, bottom), (left, right) = map(padding.amounts, x.shape[2:])
        margins, zeros = (bottom, right), (bottom - top, right - left)
    weight = part.weight.detach()
    if weight.is_inference():  # it could change, and nobody would know
        return _begun_with(zeros, weight).to(x.dtype), margins
    kept = _LAID_OUT[len(x) > 1]
    known, version = kept.get(part), (part.weight._version, weight.data_ptr(), x.dtype)
    same = known is not None and known.origin is part.weight
    if known is None or not same or known[2:] != (version, zeros):
        how = (margins, part.stride, part.dilation, part.groups, list(x.shape))
        begun = _begun_with(zeros, weight).to(x.dtype)
        reordered = torch.ops.mkldnn._reorder_convolution_weight(begun, *how)
        known = kept[part] = _LaidOut(reordered, part.weight, version, zeros)
    return known.weight, margins


def _begun_with(zeros: tuple[int, ...], weight: Tensor) -> Tensor:
    return F.pad(weight, (zeros[1], 0, zeros[0], 0)) if any(zeros) else weight
