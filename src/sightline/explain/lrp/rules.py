"""The rules of layer-wise relevance propagation, one for each kind of operation.

Relevance R of a number x is carried backwards as the multiplier c = R / x. Then a map that is
linear in what carries relevance needs no rule, since its gradient is the rule without ε; cutting,
joining and reshaping need none either; and nothing is ever divided by a small activation. What a
rule keeps from going on is written to the absorbed `(2, B)`, an input whose gradient is what
constants and what ε absorbed for each of B pictures: so autograd adds it up, for every explained
word apart. Without it nothing is counted, which saves time.

The rules are those of paper 4, section 3.2: Bach et al. 2015 for linear maps, sums and
convolutions, Arras et al. 2017 for gates.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.errors import NotApplicableError


def absorb(
    z: Tensor, constant: Tensor | float | None, epsilon: float, absorbed: Tensor | None
) -> Tensor:
    """The ε-rule at the sum `z` `(B, ...)`, of which `constant` is the part without relevance.

    R_j = z_j / (z + ε sign z) R for every part z_j of the sum; that of the constant, and what ε
    holds back, is absorbed.

    >>> x = torch.tensor([[1.0]], requires_grad=True)
    >>> absorbed = torch.zeros(2, 1, requires_grad=True)
    >>> z = absorb(x + 3, 3.0, 4.0, absorbed)
    >>> c, losses = torch.autograd.grad(z, (x, absorbed))
    >>> c.item(), losses.flatten().tolist()  # of R = 4: x has 1/8 of it, 3 has 3/8, ε has half
    (0.5, [1.5, 2.0])
    """
    if not z.requires_grad:
        return z  # of constants alone: what is absorbed would make a signal of it
    return apply(_Absorb, z, constant, epsilon, absorbed)


def absorb_all(constant: Tensor, absorbed: Tensor | None) -> Tensor:
    """A constant `(B, ...)` that is joined to signals: all relevance it is given is absorbed.

    >>> absorbed = torch.zeros(2, 1, requires_grad=True)
    >>> joined = torch.cat([torch.ones(1, 2), absorb_all(torch.full((1, 1), 3.0), absorbed)], 1)
    >>> torch.autograd.grad(joined.sum(), absorbed)[0].flatten().tolist()
    [3.0, 0.0]
    """
    if absorbed is None or not constant.is_floating_point():
        return constant
    return apply(_Absorb, constant, constant, 0.0, absorbed)


def multiply(
    x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float, absorbed: Tensor | None
) -> Tensor:
    """The ε-rule for a linear map, as `functional.linear` has it.

    >>> x, absorbed = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.zeros(2, 1)
    >>> z = multiply(x, torch.tensor([[3.0, -1.0]]), None, 0.0, absorbed)
    >>> (x * torch.autograd.grad(z, x)[0]).tolist()
    [[3.0, -2.0]]
    """
    return absorb(functional.linear(x, weight, bias), bias, epsilon, absorbed)


class AttentionSum:
    """Weighted sums of the same values, one for every step of a caption.

    Each alone would hand back multipliers as large as all the values. They are kept until the last
    has come, and are then one product.

    >>> values = torch.tensor([[[1.0], [2.0]]], requires_grad=True)
    >>> attention = AttentionSum(values)
    >>> sums = [attention.sum(torch.tensor([[weights]])) for weights in ([0.5, 0.5], [1.0, 0.0])]
    >>> torch.autograd.grad(sum(sums).sum(), values)[0].flatten().tolist()
    [1.5, 0.5]
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self._sums: list[tuple[Tensor, Tensor]] = []
        self._collected = apply(_Collect, values, self._sums)

    def sum(self, weights: Tensor) -> Tensor:
        """Sums `(B, K, D)` of the values `(B, L, D)` with constant weights `(B, K, L)`."""
        return apply(_AttentionSum, self._collected, weights, self._sums)


def identity_rule(x: Tensor, y: Tensor) -> Tensor:
    """`y` = f(x), number by number, with f(0) = 0: all relevance of y goes to x.

    >>> x = torch.tensor([0.0, 0.5], requires_grad=True)
    >>> torch.autograd.grad(identity_rule(x, torch.tanh(x)).sum(), x)[0].tolist()  # tanh(x) / x
    [1.0, 0.9242343306541443]
    """
    return apply(_Identity, x, y.detach())


def uniform_rule(product: Tensor) -> Tensor:
    """A product of two signals: either gets half of the relevance.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(uniform_rule(x * x), x)[0].item()  # of R = 9, x has 3 x 3
    3.0
    """
    return apply(_Scale, product, 0.5)


def softmax_rule(x: Tensor, y: Tensor, dim: int, absorbed: Tensor | None) -> Tensor:
    """`y` = softmax(x), expanded around x (AttnLRP: Achtibat et al. 2024, proposition 3.1).

    R_i = x_i (R_i of y - y_i Σ R of y): the gradient is the rule. A softmax is more than its linear
    part, and what is left of it is absorbed as a constant. Where x is -∞, there is nothing.

    >>> x, absorbed = torch.tensor([[1.0, 0.0]], requires_grad=True), torch.zeros(2, 1)
    >>> y = softmax_rule(x, x.softmax(-1), -1, absorbed.requires_grad_())
    >>> c, losses = torch.autograd.grad(y[0, 0], (x, absorbed))
    >>> torch.allclose((c * x).sum() + losses.sum(), y[0, 0])
    True
    """
    return apply(_Softmax, x, y.detach(), dim, absorbed)


def normalise(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    norm_epsilon: float,
    absorbed: Tensor | None,
) -> Tensor:
    """Layer norm over the last axis, whose divisor is a constant: a linear map of `x`.

    >>> x, absorbed = torch.tensor([[1.0, 3.0]], requires_grad=True), torch.zeros(2, 1)
    >>> normalise(x, None, None, 0.0, absorbed).tolist()
    [[-1.0, 1.0]]
    """
    scale = (x.detach().var(-1, correction=0, keepdim=True) + norm_epsilon).rsqrt()
    if weight is not None:
        scale = scale * weight.detach()
    y = (x - x.mean(-1, keepdim=True)) * scale
    if bias is None:
        return y
    return absorb(y + bias.detach(), bias.detach(), 0.0, absorbed)


def pad(x: Tensor, amounts: Sequence[int]) -> Tensor:
    """`functional.pad` with zeros; its gradient is a view, where torch's own makes a copy.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.grad(pad(x, (1, 0)), x, torch.tensor([3.0, 4.0, 5.0]))[0].tolist()
    [4.0, 5.0]
    """
    return apply(_Pad, x, tuple(amounts))


def refuse(x: Tensor, name: str) -> Tensor:
    """What an operation without a rule gave: an error, if relevance ever arrives there."""
    return apply(_Refuse, x, name)


def guided_rule(y: Tensor) -> Tensor:
    """What a rectifier gave: positive gradients alone go on to it (Springenberg et al. 2015).

    >>> x = torch.tensor([1.0, 1.0, -1.0], requires_grad=True)
    >>> y = guided_rule(torch.relu(x))
    >>> torch.autograd.grad(y, x, torch.tensor([2.0, -2.0, 2.0]))[0].tolist()
    [2.0, 0.0, 0.0]
    """
    return apply(_Guided, y)


def apply(rule: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    output: Tensor = rule.apply(*inputs)  # type: ignore[no-untyped-call]
    return output


class _Absorb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        constant: Tensor | float | None,
        epsilon: float,
        absorbed: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(z, constant if isinstance(constant, Tensor) else None)
        ctx.number = constant if isinstance(constant, float | int) else None
        ctx.pictures = None if absorbed is None else absorbed.shape[1]
        ctx.epsilon, ctx.shares = epsilon, None
        return z[...]  # (`view_as` would lose that channels are last)

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.shares is None:  # once for all words
            z, constant = ctx.saved_tensors
            ctx.shares = _share(z, ctx.number if constant is None else constant, ctx.epsilon)
        passed, lost = ctx.shares
        absorbed = None if ctx.pictures is None else _by_picture(count(c, lost), ctx.pictures)
        return c * passed, None, None, absorbed


def _share(z: Tensor, constant: Tensor | float | None, epsilon: float) -> tuple[Tensor, Tensor]:
    """What of a multiplier the ε-rule passes on, and what is lost, as `count` takes it."""
    size = z.abs()
    passed = size / (size + epsilon) if epsilon else torch.ones_like(z)
    held = torch.addcmul(z, z, passed, value=-1)
    return passed, losses(torch.zeros_like(z) if constant is None else passed * constant, held)


def losses(to_constants: Tensor, to_epsilon: Tensor) -> Tensor:
    """What is lost `(B, ...)` for a multiplier of one, as `count` takes it: `(2 B, n)`."""
    return torch.cat([last_channels(to_constants), last_channels(to_epsilon)])


def count(c: Tensor, lost: Tensor) -> Tensor:
    """The absorbed `(2, B)` of multipliers `(B, ...)`: what constants absorbed, then what ε did.

    A product of matrices, from which each picture's own entries are taken, is several times as fast
    as to multiply number by number and to sum.
    """
    products = last_channels(c) @ lost.T
    return torch.unflatten(products, 1, (2, -1)).diagonal(dim1=0, dim2=2)


def _by_picture(absorbed: Tensor, pictures: int) -> Tensor:
    """`(2, B)` of `(2, n)`, where a captioner has laid pictures and words out along one axis."""
    if absorbed.shape[1] == pictures:
        return absorbed
    if absorbed.shape[1] % pictures:
        raise NotApplicableError.no_rule("an operation whose first axis is not the pictures")
    return torch.unflatten(absorbed, 1, (pictures, -1)).sum(-1)


def last_channels(x: Tensor) -> Tensor:
    """`(B, ...)` to `(B, n)`; feature maps are kept with their channels last, so nothing moves."""
    return (x.movedim(1, -1) if x.dim() == 4 else x).flatten(1)


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.sums = sums
        return values[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        weights, multipliers = zip(*ctx.sums, strict=True)
        ctx.sums.clear()
        return c + torch.cat(weights, 1).mT @ torch.cat(multipliers, 1), None


class _AttentionSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, weights: Tensor, sums: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        ctx.save_for_backward(weights)
        ctx.sums = sums
        return weights @ values

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        ctx.sums.append((*ctx.saved_tensors, c))  # for `_Collect`, which autograd runs last
        return None, None, None


class _Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(torch.where(x == 0, 1, y / x))
        return y[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        (ratio,) = ctx.saved_tensors
        return c * ratio, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, dim: int, absorbed: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.dim, ctx.lost = dim, None
        ctx.pictures = None if absorbed is None else absorbed.shape[1]
        return y[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        x, y = ctx.saved_tensors
        absorbed = None
        if ctx.pictures is not None:
            if ctx.lost is None:  # once for all words
                product = y * x.masked_fill(x == -torch.inf, 0)
                linear = product - y * product.sum(ctx.dim, keepdim=True)
                ctx.lost = losses(y - linear, torch.zeros_like(y))
            absorbed = _by_picture(count(c, ctx.lost), ctx.pictures)
        weighed = c * y
        return weighed - y * weighed.sum(ctx.dim, keepdim=True), None, None, absorbed


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        return c * ctx.factor, None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, amounts: tuple[int, ...]) -> Tensor:
        ctx.shape, ctx.amounts = x.shape, amounts
        return functional.pad(x, amounts)

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        for axis, before in enumerate(ctx.amounts[::2], 1):  # from the last axis on
            c = c.narrow(-axis, before, ctx.shape[-axis])
        return c, None


class _Refuse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        return x[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> tuple[Tensor | None, ...]:
        raise NotApplicableError.no_rule(ctx.name)


class _Guided(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        return y[...]

    @staticmethod
    def backward(ctx: Any, c: Tensor) -> Tensor:
        return c.clamp(min=0)
