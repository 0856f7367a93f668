"""Running a captioner's own forward pass so that gradients can be taken of its words.

A mode stands between the model and torch; there is no second copy of any captioner.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from sightline.errors import NotApplicableError
from sightline.explain.lrp.rules import guided_rule
from sightline.explain.multi_head import multi_head_attention_forward
from sightline.explain.operands import bind
from sightline.explain.recurrence import PLAIN_RECURRENCE
from sightline.explain.word_positions import WordPositions

RECTIFIERS = {"relu", "relu6"}


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    constant: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention`, if need be with constant weights."""
    if enable_gqa:  # several queries share keys and values
        shared = query.shape[-3] // keys.shape[-3]
        keys, values = (part.repeat_interleave(shared, -3) for part in (keys, values))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    energy = (query * scale) @ keys.transpose(-2, -1)
    if is_causal:
        attn_mask = torch.ones_like(energy, dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        energy = energy.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        energy = energy + attn_mask
    weights = functional.dropout(functional.softmax(energy, -1), dropout_p)
    return (weights.detach() if constant else weights) @ values


@contextlib.contextmanager
def refusing_in_place(name: str) -> Iterator[None]:
    """Turns what torch says of tensors changed in place into a refusal; other errors are bugs.

    >>> with refusing_in_place("add_"):  # doctest: +ELLIPSIS
    ...     torch.ones(1, requires_grad=True).add_(1)
    Traceback (most recent call last):
    sightline.errors.NotApplicableError: 'add_' meets numbers that this captioner changes in ...
    """
    try:
        yield
    except RuntimeError as error:
        if not re.search(r"in-?place|out=\.\.\.", str(error)):
            raise
        raise NotApplicableError.in_place(name) from error


def _additive_energy(
    keys: Tensor, query: Tensor, vector: Tensor, *, rectified: bool = False
) -> Tensor:
    squash = torch.relu if rectified else torch.tanh
    return squash(keys[:, None] + query[:, :, None]) @ vector


def masked_scatter(base: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`masked_scatter`, of which the gradients of all words can be had at once.

    >>> base, mask = torch.zeros(3), torch.tensor([True, False, True])
    >>> masked_scatter(base, mask, torch.tensor([[1.0], [2.0]])).tolist()
    [1.0, 0.0, 2.0]
    """
    mask = mask.expand_as(base)
    places = mask.flatten().nonzero().flatten()
    kept = base.masked_fill(mask, 0)
    scattered = (
        torch.zeros_like(kept).flatten().index_copy(0, places, source.flatten()[: len(places)])
    )
    return kept + scattered.view_as(kept)


def indices(index: Any) -> Any:
    """An index without masks, which gradients of all words at once cannot be taken of."""
    if isinstance(index, Tensor) and index.dtype == torch.bool:
        return index.nonzero(as_tuple=True)
    return index


# Layers that are made of operations which have rules of their own.
PLAIN_LAYERS: dict[str, Callable[..., Any]] = {
    **PLAIN_RECURRENCE,
    "multi_head_attention_forward": multi_head_attention_forward,
}
PLAIN_FORMS: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": attend,
    "additive_energy": _additive_energy,
    "masked_scatter": masked_scatter,
    **PLAIN_LAYERS,
}


class GradientMode(TorchFunctionMode):
    """Makes word vectors inputs that gradients are taken of; else changes no number.

    Attention and recurrence are taken in plain operations: of these, the gradients of all words can
    be had at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.positions = WordPositions()
        # Vectors `(..., D)` that were looked up, and which word each is of `(...)`.
        self.words: list[tuple[Tensor, Tensor]] = []
        self.absorbed: Tensor | None = None  # an input whose gradient is what went nowhere
        self.grid: tuple[int, ...] = ()  # (B, L) of the regions that are followed
        # Regions `(B, L, D)` as the captioner's own encoder leaves them, after its last norm.
        self.normalised: Tensor | None = None

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "")
        args, kwargs = bind(name, args, kwargs or {})
        if not torch.is_grad_enabled():
            return function(*args, **kwargs)
        if self.positions.concerns(name, args):
            return self.positions.move(name, function, args, kwargs)
        if name == "embedding" or (name == "__getitem__" and self._looks_up(*args)):
            return self._look_up(function(*args, **kwargs), (*args, *kwargs.values()))
        with refusing_in_place(name):
            return self.apply(name, function, args, kwargs)

    def _looks_up(self, table: Any, ids: Any) -> bool:
        return self.positions.find(ids) is not None

    def _look_up(self, vectors: Tensor, operands: Sequence[Any]) -> Tensor:
        """Vectors of words are inputs; those of anything else, such as positions, are constants.

        Which operand has the ids, and whether they are of words, is seen by following the words.
        """
        vectors = vectors.detach()
        places = (self.positions.find(operand) for operand in operands)
        positions = next((place for place in places if place is not None), None)
        if positions is None:
            return vectors
        if not vectors.is_floating_point():  # ids of another kind, or several for each word
            self.positions.translate(vectors, positions)
            return vectors
        self.words.append((vectors.requires_grad_(), positions))
        return vectors.clone()  # which may be changed in place, as an input may not

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What an operation gives under this mode."""
        if name == "__setitem__" and len(args) == 3:
            return function(args[0], indices(args[1]), args[2])
        plain = PLAIN_FORMS.get(name)
        if plain is not None:
            with contextlib.suppress(NotApplicableError):  # torch's own has gradients, too
                return plain(*args, **kwargs)
        output = function(*args, **kwargs)
        if name == "layer_norm" and not self.words and output.shape[:-1] == self.grid:
            self.normalised = output if output.requires_grad else None
        return output


class GuidedMode(GradientMode):
    """Rectifiers pass on positive gradients alone: guided backpropagation."""

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        output = super().apply(name, function, args, kwargs)
        return guided_rule(output) if name.removesuffix("_") in RECTIFIERS else output
