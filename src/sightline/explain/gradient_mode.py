"""Running a captioner's own forward pass so that gradients can be taken of its words.

A mode stands between the model and torch; there is no second copy of any captioner.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from sightline.explain.lrp.rules import guided_rule

RECTIFIERS = {"relu", "relu6"}


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor,
    *,
    scale: float | None = None,
    constant: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention`, if need be with constant weights."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    energy = (query * scale) @ keys.transpose(-2, -1)
    weights = functional.softmax(energy.masked_fill(~attn_mask, float("-inf")), -1)
    return (weights.detach() if constant else weights) @ values


def _additive_energy(
    keys: Tensor, query: Tensor, vector: Tensor, *, rectified: bool = False
) -> Tensor:
    squash = torch.relu if rectified else torch.tanh
    return squash(keys[:, None] + query[:, :, None]) @ vector


PLAIN_FORMS: dict[str, Callable[..., Tensor]] = {
    "scaled_dot_product_attention": attend,
    "additive_energy": _additive_energy,
}


class GradientMode(TorchFunctionMode):
    """Makes word vectors inputs that gradients are taken of; else changes no number.

    Attention is taken in plain operations: of these, the gradients of all words can be had at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[Tensor] = []  # each (B, K, T, D)
        self.absorbed: Tensor | None = None  # an input whose gradient is what went nowhere

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "")
        if not torch.is_grad_enabled():
            return function(*args, **(kwargs or {}))
        if name == "embedding":
            vectors: Tensor = function(*args, **(kwargs or {}))
            self.words.append(vectors.detach().requires_grad_())
            return self.words[-1]
        return self.apply(name, function, args, kwargs or {})

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What an operation gives under this mode."""
        plain: Callable[..., Any] = PLAIN_FORMS.get(name, function)
        return plain(*args, **kwargs)


class GuidedMode(GradientMode):
    """Rectifiers pass on positive gradients alone: guided backpropagation."""

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        output = super().apply(name, function, args, kwargs)
        return guided_rule(output) if name in RECTIFIERS else output
