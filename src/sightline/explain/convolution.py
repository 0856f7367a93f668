"""The rule for convolutions, which do most of the work between regions and pixels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.explain.rules import apply, count, losses

ONE_BY_ONE = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
"""Options of a convolution that is a product of matrices."""


class Convolution:
    """The αβ-rule with α = 1 and β = 0: relevance goes to what raised the sum, in proportion.

    A bias that raises the sum takes part (Bach et al. 2015), and its share is absorbed by it. The
    original code leaves it out; but batch norms, folded, leave biases that outweigh a plain
    background, which would be handed their share. Where nothing raised the sum, all is absorbed.

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
        ledger: Tensor | None,
    ) -> None:
        self.x, self.ledger = x, ledger
        with torch.no_grad():
            self.z = functional.conv2d(x, weight, bias, **options)
            self.parts = Parts(x.detach(), weight.detach(), bias, options)

    def output(self, rectify: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """The sum or, all in one step, what a rectifier leaves of it: either has its relevance."""
        y = self.z if rectify is None else rectify(self.z)
        return apply(_Convolve, self.x, y, self.parts, self.ledger)


class Parts:
    """What a convolution adds up, without what lowers the sum.

    An input of both signs is taken as two inputs, of one sign each, with the weights of that sign.
    """

    def __init__(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, options: dict[str, Any]
    ) -> None:
        self.options = options
        self.positive = None if x.amin() >= 0 else (x > 0).to(x.dtype)
        if self.positive is None:  # after a rectifier; half of the work is spared
            self.x, self.weight = x, weight.clamp(min=0)
        else:
            self.x = self._join(x.clamp(min=0), x.clamp(max=0))
            self.weight = torch.cat([weight.clamp(min=0), weight.clamp(max=0)], 1)
        self.bias = (
            weight.new_zeros(()) if bias is None else bias.detach().clamp(min=0)[:, None, None]
        )
        self.sum = functional.conv2d(self.x, self.weight, None, **options) + self.bias

    def share(self, y: Tensor) -> Tensor:
        """What a unit of the parts has of `y`; nothing where there are none, 0 / 0 or y / 0."""
        return (y / self.sum).nan_to_num_(0, 0, 0)

    def pull(self, c: Tensor) -> Tensor:
        """Multipliers of the input, of those of the sum."""
        onward = self._transposed(c.contiguous(memory_format=torch.channels_last))
        if self.positive is None:
            return onward
        risen, lowered = torch.unflatten(onward, 1, (self.options["groups"], 2, -1)).unbind(2)
        # (By a number of 0 or 1: several times as fast as by a mask.)
        return torch.lerp(lowered.flatten(1, 2), risen.flatten(1, 2), self.positive)

    def _join(self, risen: Tensor, lowered: Tensor) -> Tensor:
        """Two inputs, group by group."""
        groups = (self.options["groups"], -1)
        both = torch.cat([torch.unflatten(part, 1, groups) for part in (risen, lowered)], 2)
        return both.flatten(1, 2).contiguous(memory_format=torch.channels_last)

    def _transposed(self, c: Tensor) -> Tensor:
        if self.weight.shape[2:] == (1, 1) and self.options == ONE_BY_ONE:
            rows = c.movedim(1, -1)
            products = rows.reshape(-1, len(self.weight)) @ self.weight[:, :, 0, 0]
            return products.view(*rows.shape[:-1], -1).movedim(-1, 1)
        options = [self.options[name] for name in ("stride", "padding", "dilation")]
        passed: Tensor = torch.ops.aten.convolution_backward(
            c,
            self.x,
            self.weight,
            None,
            *options,
            False,
            (0, 0),
            self.options["groups"],
            (True, False, False),
        )[0]
        return passed


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, parts: Parts, ledger: Tensor | None) -> Tensor:
        ctx.save_for_backward(y)
        ctx.parts, ctx.counts, ctx.share, ctx.lost = parts, ledger is not None, None, None
        return y[...]  # (`view_as` would lose that channels are last)

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.share is None:  # once for all words
            (y,) = ctx.saved_tensors
            ctx.share = ctx.parts.share(y)
            if ctx.counts:
                passed = ctx.share * (ctx.parts.sum - ctx.parts.bias)
                ctx.lost = losses(y - passed, torch.zeros_like(y))
        absorbed = count(c, ctx.lost) if ctx.counts else None
        return ctx.parts.pull(c * ctx.share), None, None, absorbed
