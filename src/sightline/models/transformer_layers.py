"""The layers of Transformer captioners: one set for papers 0 and 3, told apart by options."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.errors import ConfigError
from sightline.models.alignment import AlignedAttention, AlignmentConfig
from sightline.models.attention import AttentionOutput, MultiHeadAttention
from sightline.models.layers import Dropout


@dataclass(frozen=True)
class LayerOptions:
    """How every layer of a Transformer is built."""

    width: int
    heads: int
    feed_forward: int
    norm: Literal["pre", "post"]
    dropout: float = 0.0  # of what a sublayer adds
    attention_dropout: float = 0.0  # of attention weights
    scale_by_length: bool = False  # τ of paper 3, eq. 2
    alignment: AlignmentConfig | None = (
        None  # of the decoder's attention over the picture (paper 0)
    )

    def __post_init__(self) -> None:
        if min(self.width, self.heads, self.feed_forward) < 1:
            raise ConfigError("model: width, heads and feed_forward must be at least 1")
        if self.width % self.heads:
            raise ConfigError(f"model: {self.heads} heads do not divide a width of {self.width}")
        if not all(0 <= share < 1 for share in (self.dropout, self.attention_dropout)):
            raise ConfigError("model: dropout must be from 0 to below 1")

    def attention(self) -> MultiHeadAttention:
        """A new attention of this make."""
        return MultiHeadAttention(
            self.width,
            self.heads,
            dropout=self.attention_dropout,
            scale_by_length=self.scale_by_length,
        )

    def picture_attention(self) -> MultiHeadAttention | AlignedAttention:
        """A new attention of the decoder over the picture."""
        if self.alignment is None:
            return self.attention()
        return AlignedAttention(self.attention(), self.width, self.heads, self.alignment)


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """sin(p / 10000^(2i / width)) and cos of the same, in turn `(..., width)` (Vaswani et al.).

    >>> sinusoids(torch.tensor([0.0]), 4)
    tensor([[0., 1., 0., 1.]])
    """
    even = torch.arange(0, width, 2, device=positions.device, dtype=positions.dtype)
    angle = positions[..., None] * 10000 ** (-even / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :width]


class FeedForward(nn.Module):
    """relu(x W₁ + b₁) W₂ + b₂ (paper 3, eq. 4)."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.inner = nn.Linear(options.width, options.feed_forward)
        self.outer = nn.Linear(options.feed_forward, options.width)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.outer(functional.relu(self.inner(x)))
        return output


class Residual(nn.Module):
    """The frame of a sublayer f: norm(x + f(x)) if `post`, x + f(norm(x)) if `pre`.

    `enter` is what f is given; `leave` takes what it said.
    """

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(options.width)
        self.dropout = Dropout(options.dropout)
        self.is_pre = options.norm == "pre"

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.is_pre else x

    def leave(self, x: Tensor, said: Tensor) -> Tensor:
        total: Tensor = x + self.dropout(said)
        return total if self.is_pre else self.norm(total)


class EncoderLayer(nn.Module):
    """Self-attention over the regions `(B, L, D)`, then a feed-forward network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.attention, self.around_attention = options.attention(), Residual(options)
        self.feed_forward, self.around_feed_forward = FeedForward(options), Residual(options)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        return self.look(x, visible)[0]

    def look(
        self, x: Tensor, visible: Tensor, *, weights: bool = False
    ) -> tuple[Tensor, AttentionOutput]:
        """The layer's output, and its attention; with `weights`, how regions looked at others."""
        given = self.around_attention.enter(x)
        attended: AttentionOutput = self.attention(
            given, self.attention.remember(given), visible, weights=weights
        )
        x = self.around_attention.leave(x, attended.output)
        said = self.feed_forward(self.around_feed_forward.enter(x))
        return self.around_feed_forward.leave(x, said), attended


class Advanced(NamedTuple):
    """What a decoder layer gives: its words, their cache, and how they looked at the picture."""

    words: Tensor  # (B, K, T, D)
    cache: dict[str, Tensor]  # (B, K, H, T so far, d)
    attended: AttentionOutput  # of the K * T words of each picture


class DecoderLayer(nn.Module):
    """Self-attention over the words so far, attention over the regions, a feed-forward network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.history, self.around_history = options.attention(), Residual(options)
        self.picture, self.around_picture = options.picture_attention(), Residual(options)
        self.feed_forward, self.around_feed_forward = FeedForward(options), Residual(options)

    def forward(
        self,
        x: Tensor,
        cache: dict[str, Tensor],
        before: Tensor,
        memory: dict[str, Tensor],
        visible: Tensor,
        *,
        weights: bool = False,
        perturb: bool = False,
    ) -> Advanced:
        """New words `(B, K, T, D)` after those in the cache.

        `before` is true where a new word may see an old or new one, `visible` where it may see a
        region of `memory`. With `weights`, attention over the picture is returned; with `perturb`,
        it is perturbed instead of aligned.
        """
        rows = x.shape[:2]
        given = self.around_history.enter(x).flatten(0, 1)
        new = self.history.remember(given)
        cache = {
            name: torch.cat([cache[name], torch.unflatten(tensor, 0, rows)], 3)
            for name, tensor in new.items()
        }
        seen = {name: tensor.flatten(0, 1) for name, tensor in cache.items()}
        said = self.history(given, seen, before).output
        x = self.around_history.leave(x, torch.unflatten(said, 0, rows))

        # All words of a picture look at it together, so that it is not repeated for its rows.
        given = self.around_picture.enter(x).flatten(1, 2)
        attended: AttentionOutput
        if perturb:
            assert isinstance(self.picture, AlignedAttention)
            attended = self.picture.perturbed(given, memory, visible)
        else:
            attended = self.picture(given, memory, visible, weights=weights)
        x = self.around_picture.leave(x, torch.unflatten(attended.output, 1, x.shape[1:3]))

        said = self.feed_forward(self.around_feed_forward.enter(x))
        return Advanced(self.around_feed_forward.leave(x, said), cache, attended)
