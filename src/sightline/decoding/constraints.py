"""What a caption must and must not hold, as a mask on the next word's log-probabilities."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from sightline.config import Range
from sightline.errors import ConfigError
from sightline.text.vocabulary import END, PAD, SPECIAL, START, UNKNOWN


@dataclass(frozen=True)
class Constraints:
    """Limits that hold for every way of decoding."""

    max_length: Annotated[int, Range(1, 1000)] = (
        20  # words; a caption that reaches it is ended there
    )
    min_length: int = 1
    no_repeat_ngram: int = 0  # n: no n words in a row may occur twice; 0: no limit
    avoid: tuple[int, ...] = ()  # words that must not appear
    require: tuple[int, ...] = ()  # words that must appear (beam search only)

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.max_length:
            raise ConfigError(
                f"decoding: a caption of at least {self.min_length} and at most "
                f"{self.max_length} words is impossible; lengths start at 1"
            )
        if self.no_repeat_ngram < 0:
            raise ConfigError(
                "decoding: no_repeat_ngram must be a number of words, or 0 for no limit"
            )
        if END in self.avoid or min(self.require, default=len(SPECIAL)) < len(SPECIAL):
            raise ConfigError("decoding: only words can be required; the end cannot be avoided")
        if len(set(self.require)) < len(self.require):
            raise ConfigError("decoding: a word is required twice; give it once")
        if set(self.avoid) & set(self.require):  # `Captioner` names the words
            raise ConfigError("decoding: a word is both required and to be avoided")
        if len(self.require) > self.max_length:
            raise ConfigError(
                f"decoding: {len(self.require)} required words do not fit into {self.max_length}"
            )


def constrain_(log_probs: Tensor, prefix: Tensor, constraints: Constraints) -> None:
    """In place: of the log-probabilities `(B, K, V)`, those of impossible next words become -inf.

    `prefix` `(B, K, 1 + t)` holds the start word and the t words so far. What remains is not
    normalised again, so that a caption's score is the model's own whatever the limits were. A
    caption that has ended goes on with padding, at no cost.
    """
    words = prefix[:, :, 1:]
    log_probs[:, :, [PAD, START, UNKNOWN, *constraints.avoid]] = float("-inf")
    length = words.shape[2]
    if length < constraints.min_length:
        log_probs[:, :, END] = float("-inf")
    if constraints.no_repeat_ngram:
        _forbid_repeats(log_probs, words, constraints.no_repeat_ngram)
    if length >= constraints.max_length:
        end = log_probs[:, :, END].clone()
        log_probs.fill_(float("-inf"))
        log_probs[:, :, END] = end
    ended = (prefix[:, :, -1] == END) | (prefix[:, :, -1] == PAD)
    if ended.any():
        log_probs[ended] = float("-inf")
        log_probs[:, :, PAD].masked_fill_(ended, 0.0)


def _forbid_repeats(masked: Tensor, words: Tensor, n: int) -> None:
    """In place: no word that would complete an n-gram which the row holds already."""
    length = words.shape[2]
    if length < n:
        return
    ngrams = words.unfold(2, n, 1)  # (B, K, length - n + 1, n)
    recent = words[:, :, None, length - n + 1 :]
    repeats = (ngrams[..., :-1] == recent).all(-1)
    # Where nothing repeats, point at the padding, which is forbidden anyway.
    masked.scatter_(2, torch.where(repeats, ngrams[..., -1], PAD), float("-inf"))
