"""Attention rolled out over the layers, each weight as much as the word's score depends on it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from sightline.errors import NotApplicableError
from sightline.explain.attribution import Attribution
from sightline.explain.backward import trace
from sightline.explain.gradient_mode import PLAIN_FORMS, GradientMode, refusing_in_place
from sightline.explain.targets import Targets
from sightline.models.interface import TextSequence


def gradient_rollout(targets: Targets) -> Attribution:
    """Attention times its positive gradient, through all layers (Chefer, Gur and Wolf 2021).

    "Generic attention-model explainability for interpreting bi-modal and encoder-decoder
    Transformers", eq. 5-10. It needs a captioner of attention layers alone: others are refused, and
    so are those whose words see the picture through a third sequence. It ends at the regions, as
    our explanations of a captioner with an image encoder do: what that encoder's own attention
    mixed is not rolled back to the patches.
    """
    mode = AttentionMode()
    total, _ = trace(targets, mode)
    if not mode.maps:
        raise NotApplicableError(
            f"{type(targets.model).__name__}: it has no attention of layers and heads; explain it "
            "by another method"
        )
    words, regions = targets.tokens.shape[2], targets.regions.mask.shape[1]
    text = targets.model.text_sequence(targets.tokens)
    if any(a.shape[2] == regions + len(text.words) for a in mode.maps):
        text = _after_regions(text, regions)  # regions are a prefix of the words: one sequence
    kinds = [
        _kind(a, n < mode.before_words, len(text.words), regions) for n, a in enumerate(mode.maps)
    ]
    found = []
    for n in range(total.shape[1]):  # one after the other: maps of all words may fill the memory
        with refusing_in_place("backward"):
            gradients = torch.autograd.grad(
                total[:, n].sum(), mode.maps, retain_graph=True, materialize_grads=True
            )
        weights = [
            (a.detach() * gradient).clamp(min=0).mean(1)  # eq. 5
            for a, gradient in zip(mode.maps, gradients, strict=True)
        ]
        of_text, across = roll_out(kinds, weights, len(text.words), regions)
        found.append(_read(of_text, across, text, targets.places[:, n], words))
    of_regions, of_words = (torch.stack(parts, 1) for parts in zip(*found, strict=True))
    return Attribution(total.detach(), of_regions * targets.regions.mask[:, None], of_words)


class AttentionMode(GradientMode):
    """Keeps the weights `(B, heads, queries, keys)` of every attention layer, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.maps: list[Tensor] = []
        self.before_words = 0  # so many of them were there before the first word was looked up

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
            with self:  # its softmax comes by here
                return PLAIN_FORMS[name](*args, **kwargs)
        output = super().apply(name, function, args, kwargs)
        if name == "softmax" and output.dim() == 4 and output.requires_grad:
            self.maps.append(output)
            self.before_words += not self.words
        return output


Kind = Literal["text", "picture", "across"]
"""Whether positions of the text look at the text, regions at regions, or the text at regions."""


def _kind(a: Tensor, before_words: bool, length: int, regions: int) -> Kind:
    queries, keys = a.shape[2:]
    if before_words and queries == keys == regions:
        return "picture"
    # (Where there are as many words as regions: words do not look ahead.)
    if queries == keys == length and (length != regions or not bool(a.triu(1).any())):
        return "text"
    if (queries, keys) == (length, regions):
        return "across"
    raise NotApplicableError(
        f"gradient_rollout: {queries} positions look at {keys}, but the text has {length} and the "
        f"picture {regions}; explain this captioner by another method"
    )


def roll_out(
    kinds: Sequence[Kind], weights: Sequence[Tensor], length: int, regions: int
) -> tuple[Tensor, Tensor]:
    """What positions of the text have of the text `(B, S, S)`, and of regions `(B, S, L)`.

    Weights `(B, queries, keys)` are those of the layers in their order (eq. 6-10). A word that
    looked at two regions in one layer has what it looked with:

    >>> roll_out(["across"], [torch.tensor([[[0.75, 0.25]]])], 1, 2)[1]
    tensor([[[0.7500, 0.2500]]])
    """
    of_text, of_picture = (_identity(weights[0], size) for size in (length, regions))
    across = weights[0].new_zeros(len(weights[0]), length, regions)
    for kind, layer in zip(kinds, weights, strict=True):
        if kind == "text":
            of_text, across = of_text + layer @ of_text, across + layer @ across  # eq. 6, 7
        elif kind == "picture":
            of_picture = of_picture + layer @ of_picture
        else:
            across = across + _normalise(of_text).mT @ layer @ _normalise(of_picture)  # eq. 10
    return of_text, across


def _read(
    of_text: Tensor, across: Tensor, text: TextSequence, places: Tensor, words: int
) -> tuple[Tensor, Tensor]:
    """Relevance of the regions `(B, L)` and the words `(B, T)` for the words after `places`."""
    # The last position of a given word predicts the next one: the start word has many.
    last = torch.stack([(text.words == n).nonzero().max() for n in range(words)])
    rows, pictures = last[places], torch.arange(len(places), device=places.device)
    # That a position is itself is no relevance of the word that stands there.
    itself = _identity(of_text, of_text.shape[-1])
    own = (of_text - itself)[pictures, rows]
    regions = _collect(own, text.regions, across.shape[-1])
    return across[pictures, rows] + regions, _collect(own, text.words, words)


def _identity(like: Tensor, size: int) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device).expand(len(like), -1, -1)


def _after_regions(text: TextSequence, regions: int) -> TextSequence:
    first = torch.arange(regions, device=text.words.device)
    none = torch.full_like(first, -1)
    return TextSequence(torch.cat([none, text.words]), torch.cat([first, text.regions]))


def _normalise(relevance: Tensor) -> Tensor:
    """What layers added sums to one, beside what each position is itself (eq. 8 and 9)."""
    itself = _identity(relevance, relevance.shape[-1])
    added = relevance - itself
    total = added.sum(-1, keepdim=True)
    return added / torch.where(total > 0, total, torch.ones_like(total)) + itself


def _collect(of_text: Tensor, numbers: Tensor, count: int) -> Tensor:
    """Relevance `(B, count)` of positions `(B, S)`, by the number of what stands there, or -1."""
    collected = of_text.new_zeros(len(of_text), count + 1)  # the last is of nothing
    return collected.index_add(1, numbers.remainder(count + 1), of_text)[:, :-1]
