"""What every captioner is: the interface that decoding, training and explanation drive.

Axes, throughout: `B` pictures, `K` rows of words per picture (the beams of a search, or the
captions it is trained on, which share the picture's encoding), `T` words, `L` regions, `V` words of
the vocabulary. Nothing that depends on the picture alone is ever repeated for its K rows.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sightline.regions import Regions

Memory = dict[str, Tensor]
"""What a captioner keeps of pictures, computed once per picture: tensors `(B, ...)`."""

State = dict[str, Tensor]
"""What it carries from word to word: tensors `(B, K, ...)`, so that a beam can reorder them."""


class Step(NamedTuple):
    """The next word, for every row of every picture."""

    logits: Tensor  # (B, K, V)
    state: State
    attention: Tensor  # (B, K, L): where this word looked; sums to one over the regions
    signals: dict[str, Tensor]  # (B, K): further numbers of a word, such as the gate β


class Unrolled(NamedTuple):
    """All words of given captions at once."""

    logits: Tensor  # (B, K, T, V): for the word after each given one
    attention: Tensor  # (B, K, T, L)
    signals: dict[str, Tensor]  # (B, K, T)


class AttentionMaps(NamedTuple):
    """All attention over the pictures `(B, K, T, layers, heads, L)`.

    `raw` sums to one over the regions. `used` is what the values were summed with: the same, unless
    attention is aligned (paper 0, eq. 6-9), and then it sums to more.
    """

    raw: Tensor
    used: Tensor
    masks: Tensor | None  # m of alignment, small where a region matters (paper 0, eq. 2)


class TextSequence(NamedTuple):
    """What stands where in the sequence of S positions that a captioner's words are a part of."""

    words: Tensor  # (S,): the number of the given word, or -1
    regions: Tensor  # (S,): the number of the region, or -1


class CaptionModel(nn.Module, ABC):
    """A captioner. Laws, tested for every registered one: `forward` equals the loop of `step`; a
    batch equals its items one by one; padding changes nothing; saving and loading change nothing.
    """

    config: Any
    black_box = ""  # why nothing but its probabilities is seen; nothing, where it is seen into
    lrp_epsilon = 0.01  # of the ε-rule, unless another is asked for: paper 4, section 4

    @abstractmethod
    def encode(self, regions: Regions) -> Memory:
        """Everything that depends on the pictures alone."""

    @abstractmethod
    def start(self, memory: Memory, rows: int = 1) -> State:
        """The state before the first word, for `rows` rows per picture."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        """Take the previous words `(B, K)` and predict the next ones."""

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """Take whole captions `(B, K, T)`, each beginning with the start word.

        This is the plain loop of `step`; models override it where they can be faster.
        """
        state = self.start(memory, tokens.shape[1])
        steps = []
        for t in range(tokens.shape[2]):
            steps.append(self.step(tokens[:, :, t], state, memory))
            state = steps[-1].state
        return Unrolled(
            torch.stack([step.logits for step in steps], 2),
            torch.stack([step.attention for step in steps], 2),
            {
                name: torch.stack([step.signals[name] for step in steps], 2)
                for name in steps[0].signals
            },
        )

    def attention_maps(self, tokens: Tensor, memory: Memory) -> AttentionMaps | None:
        """Where every head of every layer looked; None for a captioner without layers and heads."""
        return None

    def text_sequence(self, tokens: Tensor) -> TextSequence:
        """Over what words `(B, K, T)` attend to words: here they are alone, and regions apart."""
        words = torch.arange(tokens.shape[2], device=tokens.device)
        return TextSequence(words, torch.full_like(words, -1))

    def forward(self, regions: Regions, tokens: Tensor) -> Unrolled:
        """The teacher-forced pass: encode the pictures, then unroll the captions."""
        return self.unroll(tokens, self.encode(regions))


def select_rows(state: State, parents: Tensor) -> State:
    """The state whose row k is row `parents[b, k]` of the old one, picture by picture."""
    pictures = torch.arange(len(parents), device=parents.device)[:, None]
    return {name: tensor[pictures, parents] for name, tensor in state.items()}


def select_pictures(tensors: dict[str, Tensor], keep: Tensor) -> dict[str, Tensor]:
    """A memory or a state of some of the pictures only."""
    return {name: tensor[keep] for name, tensor in tensors.items()}
