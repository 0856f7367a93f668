"""Torch's multi-head attention in plain operations, each of which has a rule and a gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.errors import NotApplicableError


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    heads: int,
    input_weight: Tensor | None,
    input_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    output_weight: Tensor,
    output_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,  # (a hint: the mask comes with it)
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """`nn.MultiheadAttention` of queries `(T, B, E)`, keys and values `(S, B, E)` (Vaswani 2017).

    Pictures come first in all that is computed here, as rules want it.
    """
    unusual = (bias_k, bias_v, *others.values())
    if add_zero_attn or query.dim() != 3 or any(part is not None for part in unusual):
        raise NotApplicableError.no_rule("multi_head_attention_forward with further keys")
    weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight and input_weight is not None:
        weights = input_weight.chunk(3)
    biases: Any = (None,) * 3 if input_bias is None else input_bias.chunk(3)
    q, k, v = (
        torch.unflatten(functional.linear(x.transpose(0, 1), w, b), 2, (heads, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    energy = (q * q.shape[-1] ** -0.5) @ k.transpose(2, 3)  # (B, heads, T, S)
    if attn_mask is not None:
        energy = _mask(
            energy,
            attn_mask.view(-1, heads, *attn_mask.shape[1:]) if attn_mask.dim() == 3 else attn_mask,
        )
    if key_padding_mask is not None:
        energy = _mask(energy, key_padding_mask[:, None, None])
    looks = functional.softmax(energy, -1)
    mixed = functional.dropout(looks, dropout_p, training) @ v
    output = functional.linear(mixed.transpose(1, 2).flatten(2), output_weight, output_bias)
    if average_attn_weights:
        looks = looks.mean(1)
    return output.transpose(0, 1), looks if need_weights else None


def _mask(energy: Tensor, mask: Tensor) -> Tensor:
    """Where a mask is true, or -inf, nobody looks."""
    if mask.dtype == torch.bool:
        return energy.masked_fill(mask, float("-inf"))
    return energy + mask
