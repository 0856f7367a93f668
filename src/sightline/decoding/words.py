"""The words of given captions: how likely each was, what else it could be, where it looked."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sightline.models.interface import CaptionModel, Memory
from sightline.text.vocabulary import PAD, START


class WordDetails(NamedTuple):
    """For captions `(B, N, T)`; what stands at padding means nothing."""

    log_probs: Tensor  # (B, N, T)
    alternatives: Tensor  # (B, N, T, A): the likeliest words at each place, likeliest first
    alternative_log_probs: Tensor  # (B, N, T, A)
    attention: Tensor  # (B, N, T, L)
    signals: dict[str, Tensor]  # (B, N, T)

    def cpu(self) -> "WordDetails":
        """The same, to be read number by number."""
        signals = {name: signal.cpu() for name, signal in self.signals.items()}
        log_probs, alternatives, alternative_log_probs, attention = (t.cpu() for t in self[:4])
        return WordDetails(log_probs, alternatives, alternative_log_probs, attention, signals)


def with_start(tokens: Tensor) -> Tensor:
    """What the model is given to predict `tokens`: the start word, then all but the last."""
    start = torch.full_like(tokens[..., :1], START)
    return torch.cat([start, tokens[..., :-1]], -1)


@torch.no_grad()
def describe_words(
    model: CaptionModel, memory: Memory, tokens: Tensor, alternatives: int = 5
) -> WordDetails:
    """Forced decoding: every word of the given captions in one parallel pass."""
    unrolled = model.unroll(with_start(tokens), memory)
    next_word = functional.log_softmax(unrolled.logits, -1)
    log_probs = next_word.gather(3, tokens[..., None]).squeeze(3).masked_fill(tokens == PAD, 0.0)
    best = next_word.topk(min(alternatives, next_word.shape[-1]))
    return WordDetails(log_probs, best.indices, best.values, unrolled.attention, unrolled.signals)


@torch.no_grad()
def next_words(model: CaptionModel, memory: Memory, tokens: Tensor) -> Tensor:
    """The log-probability `(B, N, T, V)` of every word at each place of the given captions."""
    return functional.log_softmax(model.unroll(with_start(tokens), memory).logits, -1)
