"""Pulling words back to what they were said of: all words of a caption in one backward pass."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from sightline.encoders.regions import Regions
from sightline.errors import SightlineError
from sightline.explain.relevance import Relevance, Tracing
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
    model, given = subject.model, subject.regions
    vectors = given.vectors.detach().requires_grad_()
    regions = Regions(vectors, given.mask, given.boxes)
    # Weights are constants here, whoever trains them elsewhere.
    constants = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.enable_grad(), mode:
        unrolled: Unrolled = functional_call(model, constants, (regions, subject.tokens))
    total = subject.chosen(unrolled.logits)
    # The vectors of the caption's words; a model may embed them more than once.
    words = [leaf for leaf in mode.words if leaf.shape[:3] == subject.tokens.shape]
    if not words:
        raise SightlineError(
            f"{type(model).__name__}: it takes words otherwise than one vector for each; explain "
            "the captioners of an ensemble one by one"
        )
    ledger = [mode.ledger] if isinstance(mode, Relevance) else []
    questions = total.shape[1]
    one_word_each = torch.eye(questions, dtype=total.dtype, device=total.device)
    # The rules can be taken for all words at once. Not every gradient can: that of fused attention
    # and of additive energies cannot.
    pull = _pull_together if ledger else _pull_each
    found = pull(
        total,
        [vectors, *words, *ledger],
        one_word_each[:, None].expand(-1, len(total), -1),
    )
    return Pulled(
        total.detach().T,
        found[0],
        [(leaf.detach()[:, 0], c[:, :, 0]) for leaf, c in zip(words, found[1:], strict=False)],
        found[-1] if ledger else None,
    )


def pull_regions(subject: Subject, c: Tensor, mode: Tracing) -> tuple[Tensor, Tensor | None]:
    """From multipliers of regions `(N, B, L, D)` to those of the encoder's input `(N, B, 3, h, w)`,
    and the ledger `(N, 2, B)` of a mode that has one.
    """
    assert subject.encoder is not None
    assert subject.x is not None
    x = subject.x.detach().requires_grad_()
    with torch.enable_grad(), mode:
        grid = subject.encoder.features(x)
    ledger = [mode.ledger] if isinstance(mode, Relevance) else []
    # One after the other: feature maps of one word fit into the processor's cache, of all do not.
    found = _pull_each(grid, [x, *ledger], torch.unflatten(c.transpose(2, 3), 3, grid.shape[2:]))
    if not ledger:
        return found[0], None
    # Regions may have been rounded on their way to the captioner, as the cache rounds them.
    exact = grid.detach().flatten(2).transpose(1, 2)
    rounding = (c * (subject.regions.vectors - exact)).sum((2, 3))
    return found[0], found[1] + torch.stack([rounding, torch.zeros_like(rounding)], 1)


def _pull_together(output: Tensor, inputs: list[Tensor], c: Tensor) -> tuple[Tensor, ...]:
    """The gradients of inputs `(N, ...)` for multipliers `(N, ...)` of the output, all at once."""

    def pull_one(own: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(output, inputs, own, materialize_grads=True)

    found: tuple[Tensor, ...] = torch.func.vmap(pull_one)(c)
    return found


def _pull_each(output: Tensor, inputs: list[Tensor], c: Tensor) -> tuple[Tensor, ...]:
    """The same, one after the other."""
    found = [
        torch.autograd.grad(output, inputs, own, retain_graph=True, materialize_grads=True)
        for own in c
    ]
    return tuple(torch.stack(parts) for parts in zip(*found, strict=True))
