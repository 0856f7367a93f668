"""Multi-head scaled dot-product attention (Vaswani et al. 2017; paper 3, eq. 1-3)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.models.layers import Dropout


class AttentionOutput(NamedTuple):
    """What an attention gives to queries `(N, Q)` over L places."""

    output: Tensor  # (N, Q, D)
    # Below: None where nobody asked.
    raw: Tensor | None = None  # (N, H, Q, L): softmax of the energies
    used: Tensor | None = None  # (N, H, Q, L): what the values were summed with
    mask: Tensor | None = None  # (N, H, Q, L): m of alignment (paper 0, eq. 2)
    gate: Tensor | None = None  # (N, H, Q): g of alignment (paper 0, eq. 10)


class MultiHeadAttention(nn.Module):
    """Attention in several heads, over places whose keys and values are kept by the caller.

    `visible` is true where a query may look: bool, broadcast to `(N, H, Q, L)`. Whoever needs no
    weights gets torch's fused attention, anybody else the same in plain operations.

    The projections have no biases, as printed: that of a key would cancel in the softmax.

    >>> attention, x = MultiHeadAttention(8, heads=2), torch.ones(1, 3, 8)
    >>> visible = torch.ones(3, 3, dtype=torch.bool).tril()
    >>> attention(x, attention.remember(x), visible, weights=True).raw[0, 0, 1].tolist()
    [0.5, 0.5, 0.0]
    """

    def __init__(
        self, width: int, heads: int, *, dropout: float = 0.0, scale_by_length: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        self.scale_by_length = scale_by_length  # τ of paper 3, eq. 2
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.dropout = Dropout(dropout)  # of the weights

    def remember(self, places: Tensor) -> dict[str, Tensor]:
        """Keys and values `(N, H, L, d)` of places `(N, L, D)`."""
        return {
            "keys": split_heads(self.key(places), self.heads),
            "values": split_heads(self.value(places), self.heads),
        }

    def forward(
        self, x: Tensor, memory: dict[str, Tensor], visible: Tensor, *, weights: bool = False
    ) -> AttentionOutput:
        """Look from `x` `(N, Q, D)` at what `remember` gave."""
        query = self.scaled_query(x, visible)
        keys, values = memory["keys"], memory["values"]
        if weights or (self.training and self.dropout.p):  # (torch's dropout is slow on a CPU)
            raw = self.weigh(query, keys, visible)
            return AttentionOutput(self.collect(raw, values), raw, raw)
        mixed = functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=visible, scale=1.0
        )
        return AttentionOutput(self.output(join_heads(mixed)))

    def scaled_query(self, x: Tensor, visible: Tensor) -> Tensor:
        """Queries over τ `(N, H, Q, d)`.

        τ = √d, or √(d_len + d) in paper 3. d_len is the number of places this very query may see,
        so that a word has the same τ in training, where others follow it, and in decoding.
        """
        query = split_heads(self.query(x), self.heads)
        d = query.shape[-1]
        if self.scale_by_length:
            return query / (visible.sum(-1, keepdim=True) + d).to(query.dtype).sqrt()
        return query / math.sqrt(d)

    def weigh(self, query: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        """α `(N, H, Q, L)` of scaled queries."""
        energy = query @ keys.transpose(-2, -1)
        return functional.softmax(energy.masked_fill(~visible, float("-inf")), -1)

    def collect(self, weights: Tensor, values: Tensor) -> Tensor:
        """The output `(N, Q, D)` for given weights."""
        output: Tensor = self.output(join_heads(self.dropout(weights) @ values))
        return output


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`(N, Q, D)` to `(N, H, Q, D / H)`.

    >>> split_heads(torch.arange(6).view(1, 1, 6), 3).tolist()
    [[[[0, 1]], [[2, 3]], [[4, 5]]]]
    """
    return torch.unflatten(x, -1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """`(N, H, Q, d)` to `(N, Q, H * d)`: the inverse of `split_heads`.

    >>> join_heads(split_heads(torch.arange(6).view(1, 1, 6), 3)).tolist()
    [[[0, 1, 2, 3, 4, 5]]]
    """
    return x.transpose(1, 2).flatten(2)
