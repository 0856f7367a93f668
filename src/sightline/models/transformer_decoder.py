"""The decoder of Transformer captioners: words in, the next words and where they looked out."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.models.attention import AttentionOutput
from sightline.models.interface import Memory, State
from sightline.models.layers import Dropout
from sightline.models.transformer_layers import DecoderLayer, LayerOptions, sinusoids


class Decoded(NamedTuple):
    """What the decoder makes of new words."""

    logits: Tensor  # (B, K, T, V)
    state: State
    picture_attention: list[AttentionOutput]  # of each layer


CACHED = ("keys", "values")  # of the words so far, in each layer


class Decoder(nn.Module):
    """Words with sinusoidal positions, decoder layers, and a linear map to the vocabulary.

    It goes on from a state by any number of words: one in decoding, all of them in training. The
    state holds keys and values of the words so far, `(B, K, H, T, d)` for each layer.
    """

    def __init__(
        self, vocabulary_size: int, layers: int, options: LayerOptions, dropout: float, tied: bool
    ) -> None:
        super().__init__()
        width = options.width
        self.width, self.heads = width, options.heads
        self.embedding = nn.Embedding(vocabulary_size, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)  # of length one, before √width
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(DecoderLayer(options) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if options.norm == "pre" else nn.Identity()
        self.output = None if tied else nn.Parameter(torch.empty(vocabulary_size, width))
        if self.output is not None:
            nn.init.xavier_uniform_(self.output)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary_size))

    def start(self, pictures: int, rows: int) -> State:
        """The state before the first word."""
        nothing = self.embedding.weight.new_empty(
            pictures, rows, self.heads, 0, self.width // self.heads
        )
        return {f"{i}.{name}": nothing for i in range(len(self.layers)) for name in CACHED}

    def forward(
        self,
        tokens: Tensor,
        state: State,
        memory: Memory,
        *,
        weigh: Collection[int] = (),
        perturb: bool = False,
    ) -> Decoded:
        """Take `tokens` `(B, K, T)`; layers in `weigh` return their attention weights.

        With `perturb`, attention over the picture is perturbed in all layers (paper 0, eq. 3).
        """
        words = tokens.shape[2]
        past = state["0.keys"].shape[3]
        time = torch.arange(past, past + words, device=tokens.device)
        position = sinusoids(time.to(self.embedding.weight.dtype), self.width)
        x = self.dropout(self.embedding(tokens) * self.width**0.5 + position)
        before = torch.ones(words, past + words, dtype=torch.bool, device=tokens.device).tril(past)
        visible = memory["visible"][:, None, None]
        following: State = {}
        picture_attention = []
        for i, layer in enumerate(self.layers):
            x, cache, attended = layer(
                x,
                part(state, i),
                before,
                part(memory, i),
                visible,
                weights=i in weigh,
                perturb=perturb,
            )
            following |= {f"{i}.{name}": tensor for name, tensor in cache.items()}
            picture_attention.append(attended)
        matrix = self.embedding.weight if self.output is None else self.output
        logits = functional.linear(self.norm(x), matrix, self.output_bias)
        return Decoded(logits, following, picture_attention)


def part(tensors: dict[str, Tensor], layer: int) -> dict[str, Tensor]:
    """What a memory or a state holds for one layer.

    >>> part({"0.keys": torch.zeros(1), "1.keys": torch.ones(1)}, 1)
    {'keys': tensor([1.])}
    """
    prefix = f"{layer}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
