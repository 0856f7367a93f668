"""The policy that captions are drawn from, as log-probabilities with a gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sightline.decoding.constraints import Constraints
from sightline.text.vocabulary import END, PAD, START, UNKNOWN

# On a CPU, so many logits at a time: two megabytes, which its caches hold.
_AT_A_TIME = 1 << 19


def policy_log_probs(
    logits: Tensor, captions: Tensor, limits: Constraints, temperature: float = 1.0
) -> Tensor:
    """Log-probability of each word `(B, S, T)` where only possible words are drawn.

    As in decoding: no special word, no end before `min_length` words, and after `max_length` of
    them only the end, whose probability is then one. Padding has no probability to learn.

    >>> logits, captions = torch.zeros(1, 1, 2, 6), torch.tensor([[[5, END]]])
    >>> policy_log_probs(logits, captions, Constraints(max_length=1)).exp()
    tensor([[[0.5000, 1.0000]]])
    """
    free = captions != PAD
    free[..., limits.max_length :] = False
    early = torch.arange(captions.shape[2], device=captions.device) < limits.min_length
    rows = free.flatten().nonzero().squeeze(1)
    early = early.expand_as(captions).flatten()[rows]
    of_rows: Tensor = _LogProbs.apply(  # type: ignore[no-untyped-call]
        logits.flatten(0, 2), captions.flatten()[rows], rows, early, temperature
    )
    none = of_rows.new_zeros(captions.numel())
    return none.index_copy(0, rows, of_rows).view(captions.shape)


class _LogProbs(torch.autograd.Function):
    """Of one word of each of the `rows` of logits.

    The distributions over the vocabulary, larger than all else in a step, are never stored: they
    are made some rows at a time, and again for the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, words: Tensor, rows: Tensor, early: Tensor, temperature: float
    ) -> Tensor:
        ctx.save_for_backward(logits, words, rows, early)
        ctx.temperature = temperature
        totals, chosen = [], []
        for at in _some(logits, len(rows)):
            possible = _possible(logits[rows[at]], early[at], temperature)
            totals.append(possible.logsumexp(-1))
            chosen.append(possible.gather(1, words[at, None]).squeeze(1))
        ctx.totals = torch.cat(totals)
        log_probs: Tensor = torch.cat(chosen) - ctx.totals
        return log_probs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        logits, words, rows, early = ctx.saved_tensors
        for_logits = torch.zeros_like(logits)
        gradient = gradient / ctx.temperature
        for at in _some(logits, len(rows)):
            possible = _possible(logits[rows[at]], early[at], ctx.temperature)
            slope = possible.sub_(ctx.totals[at, None]).exp_().mul_(-gradient[at, None])
            slope.scatter_add_(1, words[at, None], gradient[at, None])
            for_logits[rows[at]] = slope.to(logits.dtype)
        return for_logits, None, None, None, None


def _some(logits: Tensor, count: int) -> list[slice]:
    """Slices of the rows; one of none where there are none."""
    step = count
    if logits.device.type == "cpu":
        step = max(_AT_A_TIME // logits.shape[1], 1)
    return [slice(first, first + step) for first in range(0, max(count, 1), max(step, 1))]


def _possible(logits: Tensor, early: Tensor, temperature: float) -> Tensor:
    """Logits over the temperature, in 32 bits at least, without those of impossible words."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    possible = logits.to(wide, copy=True).div_(temperature)
    possible[:, [PAD, START, UNKNOWN]] = float("-inf")
    possible[:, END].masked_fill_(early, float("-inf"))
    return possible
