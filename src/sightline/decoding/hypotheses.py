"""Captions as decoding leaves them: word ids and scores."""

from typing import NamedTuple

from torch import Tensor


class Hypotheses(NamedTuple):
    """The captions of B pictures, N of each: best first, or as they were sampled.

    Where a search had fewer than N to give, the rest is padding with a log-probability of -inf.
    """

    tokens: Tensor  # (B, N, T): words, then the end word, then padding; no start word
    log_probs: Tensor  # (B, N): the model's log-probability of the whole caption, end included
    scores: Tensor  # (B, N): what a beam search ranks by: log_probs / length ** length_power
    # (B, N, T): the log-probability of each word, zero at padding; None: it was not kept.
    word_log_probs: Tensor | None = None
