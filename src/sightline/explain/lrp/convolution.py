"""The rule for convolutions, which do most of the work between regions and pixels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.errors import NotApplicableError
from sightline.explain.lrp.rules import apply, count, losses

ONE_BY_ONE = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
"""Options of a convolution that is a product of matrices."""


class Convolution:
    """The αβ-rule with α = 1 and β = 0: relevance goes to what raised the sum, in proportion.

    A bias that raises the sum takes part (Bach et al. 2015), and its share is lost by it. The
    original code leaves it out; but batch norms, folded, leave biases that outweigh a plain
    background, which would be handed their share. Where nothing raised the sum, all is lost.

    With `before`, whose rectified output `x` is, relevance goes through both in one step. Nobody
    else holds the multipliers in between, so that they can be overwritten.

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
        absorbed: Tensor | None,
        before: "Convolution | None" = None,
    ) -> None:
        self.start: Tensor = x if before is None else before.start
        self.links: tuple[Link, ...] = ()
        self._before = () if before is None else before.links
        self.absorbed = absorbed
        bias = None if bias is None else bias.detach()
        rectified = before is not None
        given, version = x.detach(), x._version

        def find_parts() -> Parts:
            if given._version != version:  # (autograd knows of tensors that it keeps itself)
                raise NotApplicableError.in_place("conv2d")
            return Parts(given, weight.detach(), bias, options, rectified)

        self._find_parts = find_parts
        with torch.no_grad():
            self._z = functional.conv2d(x, weight, bias, **options)

    def output(self, rectify: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """The sum or, all in one step, what a rectifier leaves of it: either has its relevance."""
        y = self._z if rectify is None else rectify(self._z)
        self.links = (*self._before, Link(y, self._find_parts))
        return apply(_Convolve, self.start, y, self.links, self.absorbed)


class Link:
    """A convolution among those that are fed by one another alone."""

    def __init__(self, y: Tensor, find_parts: Callable[[], "Parts"]) -> None:
        self._y, self._find_parts = y, find_parts
        self._parts: Parts | None = None  # until there is relevance

    def backward(self, c: Tensor, counts: bool, owned: bool) -> tuple[Tensor, Tensor | None]:
        """Multipliers of the input, of those of `y`, and what is lost, if it `counts`.

        Multipliers that are `owned` are overwritten.
        """
        if self._parts is None:  # once for all words
            self._parts = self._find_parts()
            self._share, self._lost = self._parts.share(self._y, counts)
        lost = None if self._lost is None else count(c, self._lost)
        shared = c.mul_(self._share) if owned else c * self._share
        return self._parts.backward(shared), lost


class Parts:
    """What a convolution adds up, without what lowers the sum.

    An input of both signs is taken as two inputs, of one sign each, with the weights of that sign.
    One that is known to be `rectified`, or turns out to have no number below 0, spares half of it.
    """

    def __init__(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        options: dict[str, Any],
        rectified: bool,
    ) -> None:
        self._bias = None if bias is None else bias.clamp(min=0)
        self._inputs, weights = [x], [weight.clamp(min=0)]
        self._positive: Tensor | None = None
        if not rectified and x.amin() < 0:
            self._inputs = [x.clamp(min=0), x.clamp(max=0)]
            weights.append(weight.clamp(max=0))
            self._positive = (x > 0).to(x.dtype)
            if options["groups"] == 1:  # one convolution of both is faster than one of each
                self._inputs, weights = [torch.cat(self._inputs, 1)], [torch.cat(weights, 1)]
        self._kernels = [Kernel(part, options) for part in weights]

    def share(self, y: Tensor, counts: bool) -> tuple[Tensor, Tensor | None]:
        """What a unit of the parts has of `y`, and, if that `counts`, what is lost of `y`.

        Where there are no parts, 0 / 0 or y / 0, they have nothing, and all is lost.
        """
        total = self._sum()
        if not counts:
            return torch.div(y, total, out=total).nan_to_num_(0, 0, 0), None
        share = (y / total).nan_to_num_(0, 0, 0)
        inputs = total if self._bias is None else total - self._bias[:, None, None]
        return share, losses(y - share * inputs, torch.zeros_like(y))

    def backward(self, c: Tensor) -> Tensor:
        """Multipliers of the input, of those of the sum."""
        c = c.contiguous(memory_format=torch.channels_last)
        pairs = zip(self._kernels, self._inputs, strict=True)
        passed = [kernel.transposed(c, x) for kernel, x in pairs]
        if self._positive is None:
            return passed[0]
        risen, lowered = passed if len(passed) == 2 else passed[0].chunk(2, 1)
        # (By a number of 0 or 1: several times as fast as by a mask.)
        return torch.lerp(lowered, risen, self._positive)

    def _sum(self) -> Tensor:
        total = self._kernels[0].sum(self._inputs[0], self._bias)
        for kernel, x in zip(self._kernels[1:], self._inputs[1:], strict=True):
            total.add_(kernel.sum(x, None))
        return total


class Kernel:
    """Weights `(O, I / groups, h, w)` of a convolution, and the way back through it."""

    def __init__(self, weight: Tensor, options: dict[str, Any]) -> None:
        self.weight, self.options = weight, options
        one_by_one = weight.shape[2:] == (1, 1) and options == ONE_BY_ONE
        self.matrix = weight[:, :, 0, 0] if one_by_one else None
        self.transposed = self._choose()

    def sum(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return functional.conv2d(x, self.weight, bias, **self.options)

    def _choose(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The fastest way from multipliers of sums, and an input, to its multipliers."""
        height, width = self.weight.shape[2:]
        if (matrix := self.matrix) is not None:
            return lambda c, x: (c.movedim(1, -1) @ matrix).movedim(-1, 1)
        depthwise = self.weight.shape[1] == 1 and self.options["groups"] == len(self.weight)
        if depthwise and self.options["stride"] == self.options["dilation"] == (1, 1):
            top, left = self.options["padding"]
            flipped = self.weight.flip(2, 3)
            padding, groups = (height - 1 - top, width - 1 - left), len(flipped)
            return lambda c, x: functional.conv2d(c, flipped, padding=padding, groups=groups)
        return self._gradient

    def _gradient(self, c: Tensor, x: Tensor) -> Tensor:
        options = [self.options[name] for name in ("stride", "padding", "dilation")]
        passed: Tensor = torch.ops.aten.convolution_backward(
            c,
            x,
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
    def forward(
        ctx: Any, x: Tensor, y: Tensor, links: tuple[Link, ...], absorbed: Tensor | None
    ) -> Tensor:
        ctx.links, ctx.counts = links, absorbed is not None
        return y[...]  # (`view_as` would lose that channels are last)

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        absorbed: Tensor | None = None
        for i, link in enumerate(reversed(ctx.links)):
            c, lost = link.backward(c, ctx.counts, owned=i > 0)
            if lost is not None:
                absorbed = lost if absorbed is None else absorbed + lost
        return c, None, None, absorbed
