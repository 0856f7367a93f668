"""Pulling words back to what they were said of: all words of a caption in one backward pass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from sightline.errors import SightlineError
from sightline.explain.gradient_mode import GradientMode
from sightline.explain.lrp.rules import apply
from sightline.explain.targets import Targets
from sightline.models.interface import Unrolled
from sightline.regions import Regions


class Multipliers(NamedTuple):
    """Multipliers (gradients, or R / x under the rules of LRP) of N words, N first."""

    total: Tensor  # (N, B): the logits
    regions: Tensor  # (N, B, L, D)
    words: list[tuple[Tensor, Tensor]]  # word vectors (B, T, D), multipliers (N, B, T, D)
    absorbed: Tensor | None  # (N, 2, B)


def backward_to_regions(targets: Targets, mode: GradientMode) -> Multipliers:
    """From the logits asked for to the regions and to the vectors of the words before."""
    total, vectors, words = _trace(targets, mode)
    absorbed = mode.absorbed
    inputs = [vectors, *words] if absorbed is None else [vectors, *words, absorbed]
    found = _backward(total, inputs)
    return Multipliers(
        total.detach().T,
        found[0],
        _first_rows(words, found[1:]),
        None if absorbed is None else found[-1],
    )


def _trace(targets: Targets, mode: GradientMode) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The logits `(B, N)` asked for, and what they are made of: regions, and words' vectors."""
    model, given = targets.model, targets.regions
    vectors = given.vectors.detach().requires_grad_()
    regions = Regions(vectors, given.mask, given.boxes)
    # Weights are constants here, whoever trains them elsewhere.
    constants = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.enable_grad(), mode:
        unrolled: Unrolled = functional_call(model, constants, (regions, targets.tokens))
    with torch.enable_grad():
        total = targets.chosen(unrolled.logits)
    # The vectors of the caption's words; a model may embed them more than once.
    words = [leaf for leaf in mode.words if leaf.shape[:3] == targets.tokens.shape]
    if not words:
        raise SightlineError(
            f"{type(model).__name__}: it takes words otherwise than one vector for each; explain "
            "the captioners of an ensemble one by one"
        )
    return total, vectors, words


def _backward(total: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Multipliers of inputs, for each of N words, N first."""
    one_word_each = torch.eye(total.shape[1], dtype=total.dtype, device=total.device)
    given: list[Tensor] = []
    with torch.enable_grad():
        end = apply(_Handing, total, given)

    def backward_one(c: Tensor) -> tuple[Tensor, ...]:
        given[:] = [c]
        return torch.autograd.grad(end, inputs, materialize_grads=True)

    found: tuple[Tensor, ...] = torch.func.vmap(backward_one)(
        one_word_each[:, None].expand(-1, len(total), -1)
    )
    return found


class _Handing(torch.autograd.Function):
    """Hands on the multipliers that are `given` when it is multipliers.

    `torch.autograd.grad` takes multipliers, too, but then imports all of sympy to compare their
    shapes: as long as the rest of a first caption's check.
    """

    @staticmethod
    def forward(ctx: Any, total: Tensor, given: list[Tensor]) -> Tensor:
        ctx.given = given
        return total.new_zeros(())

    @staticmethod
    def backward(ctx: Any, one: Tensor) -> tuple[Tensor, None]:
        return one * ctx.given[0], None


def _first_rows(words: list[Tensor], found: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Without the axis K: there is one caption for each picture."""
    return [(leaf.detach()[:, 0], c[:, :, 0]) for leaf, c in zip(words, found, strict=False)]


def backward_to_pixels(targets: Targets, c: Tensor, mode: GradientMode) -> Tensor:
    """From multipliers of regions `(N, B, L, D)` to those of the encoder's input `(N, B, 3, h, w)`.

    One word after the other: two or more together take half as long again, for their feature maps
    fit into no cache.
    """
    assert targets.encoder is not None
    assert targets.x is not None
    x = targets.x.detach().requires_grad_()
    with torch.enable_grad(), mode:
        grid = targets.encoder.features(x)
    own = torch.unflatten(c.transpose(2, 3), 3, grid.shape[2:])
    with torch.enable_grad():
        ends = [(grid * one).sum() for one in own]
    return torch.stack([torch.autograd.grad(end, x, retain_graph=True)[0] for end in ends])


def word_relevance(words: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Σ x c over each previous word's vector `(B, N, T)`, of vectors and multipliers."""
    return torch.stack([(vectors * c).sum(-1) for vectors, c in words]).sum(0).transpose(0, 1)
