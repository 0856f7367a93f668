"""Backward passes from words to regions and pixels: all words of a caption at once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from sightline.decoding.ensemble import Ensemble
from sightline.errors import NotApplicableError
from sightline.explain.gradient_mode import GradientMode, refusing_in_place
from sightline.explain.lrp.rules import apply
from sightline.explain.targets import Targets
from sightline.models.interface import Unrolled
from sightline.progress import advance
from sightline.regions import Regions

# Words whose backward passes are made at once: more than captions have, but not more than fit into
# memory with a text of a thousand words, in which each of them rests on all before it.
AT_ONCE = 32
# How much of the largest the same numbers may differ, made in another order; and how much regions,
# which are kept in half precision (2^-11).
ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 3e-2}
_KEPT = 1e-3


class WordVectors(NamedTuple):
    """Vectors of words as a captioner looked them up together: all at once, or those of a step."""

    positions: Tensor  # (...): number of each word among the B x T given ones; -1: none of them
    vectors: Tensor  # (..., D)
    multipliers: Tensor  # (N, ..., D)


class Multipliers(NamedTuple):
    """Multipliers (gradients, or R / x under the rules of LRP) of N words, N first."""

    total: Tensor  # (N, B): the logits
    regions: Tensor  # (N, B, L, D)
    words: list[WordVectors]
    length: int  # T, the number of given words
    absorbed: Tensor | None  # (N, 2, B)
    # Regions `(B, L, D)` after the last norm of the captioner's own encoder, with their multipliers
    # `(N, B, L, D)`; None if it has no such norm.
    normalised: tuple[Tensor, Tensor] | None


def backward_to_regions(targets: Targets, mode: GradientMode) -> Multipliers:
    """From the logits asked for to the regions and to the vectors of the words before."""
    total, vectors = trace(targets, mode)
    words = [leaf for leaf, _ in mode.words]
    absorbed, normalised = mode.absorbed, mode.normalised
    further = [tensor for tensor in (absorbed, normalised) if tensor is not None]
    multipliers = _backward(total, [vectors, *words, *further])
    of_further = list(multipliers[1 + len(words) :])
    return Multipliers(
        total.detach().T,
        multipliers[0],
        [
            WordVectors(positions, leaf.detach(), c)
            for (leaf, positions), c in zip(mode.words, multipliers[1:], strict=False)
        ],
        targets.tokens.shape[2],
        None if absorbed is None else of_further[0],
        None if normalised is None else (normalised.detach(), of_further[-1]),
    )


def trace(targets: Targets, mode: GradientMode) -> tuple[Tensor, Tensor]:
    """The logits `(B, N)` asked for, and the regions they are made of; the mode has the words."""
    model, given = targets.model, targets.regions
    if isinstance(model, Ensemble):
        raise NotApplicableError("explain the captioners of an ensemble one by one")
    vectors = given.vectors.detach().requires_grad_()
    regions = Regions(vectors, given.mask, given.boxes)
    # Weights are constants here, whoever trains them elsewhere.
    constants = {name: parameter.detach() for name, parameter in model.named_parameters()}
    mode.positions.follow(targets.tokens)
    mode.grid = given.mask.shape
    with torch.enable_grad(), mode:
        unrolled: Unrolled = functional_call(model, constants, (regions, targets.tokens))
    with torch.enable_grad():
        total = targets.chosen(unrolled.logits)
    if not mode.words:
        raise NotApplicableError(
            f"{type(model).__name__}: it looks up no vector for its words; give it an nn.Embedding "
            "of the tokens, or explain it by attention or occlusion"
        )
    return total, vectors


def _backward(total: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Multipliers of inputs, for each of N words, N first."""
    one_word_each = torch.eye(total.shape[1], dtype=total.dtype, device=total.device)
    given: list[Tensor] = []
    with torch.enable_grad():
        end = apply(_Handing, total, given)

    again = len(one_word_each) > AT_ONCE

    def backward_one(c: Tensor) -> tuple[Tensor, ...]:
        given[:] = [c]
        return torch.autograd.grad(end, inputs, retain_graph=again, materialize_grads=True)

    with refusing_in_place("backward"):
        multipliers: tuple[Tensor, ...] = torch.func.vmap(backward_one, chunk_size=AT_ONCE)(
            one_word_each[:, None].expand(-1, len(total), -1)
        )
    return multipliers


class _Handing(torch.autograd.Function):
    """Hands on the multipliers that are `given` when the backward pass reaches it.

    `torch.autograd.grad` takes multipliers, too, but then imports all of sympy to compare their
    shapes: as long as the rest of a first caption's check.
    """

    @staticmethod
    def forward(ctx: Any, total: Tensor, given: list[Tensor]) -> Tensor:
        ctx.given = given
        return total.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.given[0], None


def backward_to_pixels(targets: Targets, c: Tensor, mode: GradientMode) -> Tensor:
    """From multipliers of regions `(N, B, L, D)` to those of the encoder's input `(N, B, 3, h, w)`.

    One word after the other: two or more together take half as long again, for their feature maps
    fit into no cache.
    """
    assert targets.encoder is not None
    assert targets.x is not None
    x = targets.x.detach().requires_grad_()
    with torch.enable_grad(), mode:
        vectors = targets.encoder.vectors(x)
    regions, mask = targets.regions.vectors, targets.regions.mask
    tolerance = max(_KEPT, ROUNDING[vectors.dtype])
    require_same(targets.encoder.name, vectors[mask], regions[mask], regions[mask], tolerance)
    with torch.enable_grad():
        ends = [(vectors * multipliers).sum() for multipliers in c]
    of_pixels = []
    for number, end in enumerate(ends):
        advance(number, len(ends))
        with refusing_in_place("backward"):
            of_pixels.append(torch.autograd.grad(end, x, retain_graph=True)[0])
    return torch.stack(of_pixels)


def require_same(
    name: str, explained: Tensor, own: Tensor, among: Tensor, tolerance: float
) -> None:
    """Refuse what comes out otherwise under a mode than of a network itself.

    The tolerance is relative to the largest number `among` which it stands.

    >>> own = torch.tensor([1.0, 2.0])
    >>> require_same("Network", torch.tensor([1.0, 3.0]), own, own, 0.1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sightline.errors.NotApplicableError: Network: what would be explained is 50 % off ...
    """
    off = (explained.detach() - own).abs().max() / among.abs().max().clamp(min=1e-30)
    if not off <= tolerance:
        raise NotApplicableError(
            f"{name}: what would be explained is {100 * float(off):.2g} % off what it says itself: "
            "it changes numbers in place, or differs from pass to pass; explain it by attention or "
            "occlusion"
        )


def word_relevance(multipliers: Multipliers, by_vectors: bool = True) -> Tensor:
    """Σ x c over each previous word's vector `(B, N, T)`; Σ c, if not `by_vectors`.

    A captioner may look a word up more than once: its parts are added up.
    """
    targets, pictures = multipliers.total.shape
    given = pictures * multipliers.length
    relevance = multipliers.total.new_zeros(targets, given + 1)  # the last is of no word
    for positions, vectors, c in multipliers.words:
        parts = ((vectors * c) if by_vectors else c).sum(-1).flatten(1)
        relevance.index_add_(1, positions.flatten().remainder(given + 1), parts)
    return torch.unflatten(relevance[:, :-1], 1, (pictures, -1)).transpose(0, 1)
