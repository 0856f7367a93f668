"""The rule for convolutions, which do most of the work between regions and pixels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.explain.rules import apply, count, last_channels

ONE_BY_ONE = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
"""Options of a convolution that is a product of matrices."""


class Convolution:
    """The αβ-rule with α = 1 and β = 0: relevance goes to what raised the sum, in proportion.

    The bias has no part in it, as in the original code; where nothing raised the sum, its relevance
    is absorbed, and counted with the constants.

    >>> x = torch.tensor([1.0, 2.0, -1.0]).view(1, 3, 1, 1).requires_grad_()
    >>> weight = torch.tensor([3.0, -1.0, -1.0]).view(1, 3, 1, 1)
    >>> z = Convolution(x, weight, None, ONE_BY_ONE, torch.zeros(2, 1, requires_grad=True)).output()
    >>> (x * torch.autograd.grad(z, x)[0]).flatten().tolist()  # of 3 - 2 + 1 = 2
    [1.5, 0.0, 0.5]
    """

    def __init__(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        options: dict[str, Any],
        ledger: Tensor,
    ) -> None:
        self.x, self.weight, self.options, self.ledger = x, weight.detach(), options, ledger
        with torch.no_grad():
            self.z = functional.conv2d(x, weight, bias, **options)
            self.raising = _raising(x, self.weight, options)

    def output(self, rectify: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """The sum or, all in one step, what a rectifier leaves of it: either has its relevance."""
        y = self.z if rectify is None else rectify(self.z)
        inputs = (self.x, self.weight, y, self.raising, self.options, self.ledger)
        return apply(_Convolve, *inputs)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        y: Tensor,
        raising: Tensor,
        options: dict[str, Any],
        ledger: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, y, raising)
        ctx.options, ctx.prepared = options, None
        return y[...]  # (`view_as` would lose that channels are last)

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y, raising = ctx.saved_tensors
        if ctx.prepared is None:  # once for all words
            ctx.prepared = _prepare(x, weight, y, raising)
        share, lost, negative, (risen, lowered) = ctx.prepared
        c = c.contiguous(memory_format=torch.channels_last)
        per_unit = c * share
        onward = _transposed(x, risen, per_unit, ctx.options)
        if negative is not None:
            onward = torch.where(negative, _transposed(x, lowered, per_unit, ctx.options), onward)
        absorbed = None if lost is None else count(c, [lost]).flip(0)  # by constants
        return onward, None, None, None, None, absorbed


def _prepare(x: Tensor, weight: Tensor, y: Tensor, raising: Tensor) -> tuple[Any, ...]:
    idle = raising <= torch.finfo(y.dtype).tiny
    lost = y * idle
    negative = x < 0
    return (
        (y / raising).masked_fill_(idle, 0),
        last_channels(lost) if lost.any() else None,
        negative if negative.any() else None,
        (weight.clamp(min=0), weight.clamp(max=0)),
    )


def _raising(x: Tensor, weight: Tensor, options: dict[str, Any]) -> Tensor:
    """The sum of all that is positive of what a convolution adds up."""
    if not (x < 0).any():  # after a rectifier; half of the work is spared
        return functional.conv2d(x, weight.clamp(min=0), None, **options)
    positive = functional.conv2d(x.clamp(min=0), weight.clamp(min=0), None, **options)
    return positive.add_(functional.conv2d(x.clamp(max=0), weight.clamp(max=0), None, **options))


def _transposed(x: Tensor, weight: Tensor, c: Tensor, options: dict[str, Any]) -> Tensor:
    """What a convolution with `weight` passes back to `x` of `c`."""
    if weight.shape[2:] == (1, 1) and options == ONE_BY_ONE:
        rows = c.movedim(1, -1)
        products = rows.reshape(-1, len(weight)) @ weight[:, :, 0, 0]
        return products.view(*rows.shape[:-1], -1).movedim(-1, 1)
    passed: Tensor = torch.ops.aten.convolution_backward(
        c,
        x,
        weight,
        None,
        options["stride"],
        options["padding"],
        options["dilation"],
        False,
        (0, 0),
        options["groups"],
        (True, False, False),
    )[0]
    return passed
