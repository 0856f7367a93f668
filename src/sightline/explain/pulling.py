"""Pulling words back to what they were said of: all words of a caption in one backward pass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from sightline.encoders.regions import Regions
from sightline.errors import SightlineError
from sightline.explain.relevance import Relevance, Tracing
from sightline.explain.rules import apply
from sightline.explain.subject import Subject
from sightline.models.interface import Unrolled


class Pulled(NamedTuple):
    """Multipliers (gradients, or R / x under the rules of LRP) of N words, N first."""

    total: Tensor  # (N, B): the logits
    regions: Tensor  # (N, B, L, D)
    words: list[tuple[Tensor, Tensor]]  # word vectors (B, T, D), multipliers (N, B, T, D)
    ledger: Tensor | None  # (N, 2, B)


def pull_words(subject: Subject, mode: Tracing) -> Pulled:
    """From the logits asked for to the regions and to the vectors of the words before."""
    total, vectors, words = _trace(subject, mode)
    ledger = mode.ledger if isinstance(mode, Relevance) else None
    inputs = [vectors, *words] if ledger is None else [vectors, *words, ledger]
    found = _pull(total, inputs)
    return Pulled(
        total.detach().T,
        found[0],
        _first_rows(words, found[1:]),
        None if ledger is None else found[-1],
    )


def pull_previous(subject: Subject, mode: Tracing) -> list[tuple[Tensor, Tensor]]:
    """`Pulled.words` alone: nothing is taken on to the regions, where most of the work would be."""
    total, _, words = _trace(subject, mode)
    return _first_rows(words, _pull(total, words))


def _trace(subject: Subject, mode: Tracing) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The logits `(B, N)` asked for, and what they are made of: regions, and words' vectors."""
    model, given = subject.model, subject.regions
    vectors = given.vectors.detach().requires_grad_()
    regions = Regions(vectors, given.mask, given.boxes)
    # Weights are constants here, whoever trains them elsewhere.
    constants = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.enable_grad(), mode:
        unrolled: Unrolled = functional_call(model, constants, (regions, subject.tokens))
    with torch.enable_grad():
        total = subject.chosen(unrolled.logits)
    # The vectors of the caption's words; a model may embed them more than once.
    words = [leaf for leaf in mode.words if leaf.shape[:3] == subject.tokens.shape]
    if not words:
        raise SightlineError(
            f"{type(model).__name__}: it takes words otherwise than one vector for each; explain "
            "the captioners of an ensemble one by one"
        )
    return total, vectors, words


def _pull(total: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Multipliers of inputs, for each of N words, N first."""
    one_word_each = torch.eye(total.shape[1], dtype=total.dtype, device=total.device)
    given: list[Tensor] = []
    with torch.enable_grad():
        end = apply(_Handing, total, given)

    def pull_one(c: Tensor) -> tuple[Tensor, ...]:
        given[:] = [c]
        return torch.autograd.grad(end, inputs, materialize_grads=True)

    found: tuple[Tensor, ...] = torch.func.vmap(pull_one)(
        one_word_each[:, None].expand(-1, len(total), -1)
    )
    return found


class _Handing(torch.autograd.Function):
    """Hands on the multipliers that are `given` when it is pulled.

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


def pull_regions(subject: Subject, c: Tensor, mode: Tracing) -> Tensor:
    """From multipliers of regions `(N, B, L, D)` to those of the encoder's input `(N, B, 3, h, w)`.

    One word after the other: to pull two or more together through feature maps takes half as long
    again, for they fit into no cache.
    """
    assert subject.encoder is not None
    assert subject.x is not None
    x = subject.x.detach().requires_grad_()
    with torch.enable_grad(), mode:
        grid = subject.encoder.features(x)
    own = torch.unflatten(c.transpose(2, 3), 3, grid.shape[2:])
    with torch.enable_grad():
        ends = [(grid * one).sum() for one in own]
    return torch.stack([torch.autograd.grad(end, x, retain_graph=True)[0] for end in ends])
