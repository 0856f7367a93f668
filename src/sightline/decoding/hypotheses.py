"""Captions as decoding leaves them: word ids and scores."""

from typing import NamedTuple

from torch import Tensor


class Hypotheses(NamedTuple):
    """The captions of B pictures, N of each, best first."""

    tokens: Tensor  # (B, N, T): words, then the end word, then padding; no start word
    log_probs: Tensor  # (B, N): the model's log-probability of the whole caption, end included
    scores: Tensor  # (B, N): what they are ranked by: log_probs / length ** length_power
