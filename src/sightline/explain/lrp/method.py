"""Layer-wise relevance propagation through any captioner (paper 4, section 3.2, algorithm 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sightline.errors import NotApplicableError
from sightline.explain.attribution import Attribution
from sightline.explain.backward import (
    ROUNDING,
    backward_to_pixels,
    backward_to_regions,
    require_same,
    word_relevance,
)
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets


def lrp(
    targets: Targets, epsilon: float | None = None, *, through_attention: bool = False
) -> Attribution:
    """The relevance of pixels, regions and previous words, and what was absorbed on the way.

    It begins with the word's logit. Relevance of the regions is that of all words up to the one
    explained, summed (algorithm 1, line 9). Weights of attention are gates, which get none, unless
    it is to go `through_attention`, too (`attn_lrp`). `epsilon` is by default the captioner's own.
    """
    epsilon = targets.model.lrp_epsilon if epsilon is None else epsilon
    vectors = targets.regions.vectors
    mode = LRPMode(len(vectors), epsilon, vectors.dtype, vectors.device, through_attention)
    multipliers = backward_to_regions(targets, mode)
    assert multipliers.absorbed is not None
    _require_own_logits(targets, multipliers.total.T)
    regions = (multipliers.regions * vectors).sum(-1).transpose(0, 1)
    pixels = by_encoder = None
    if targets.x is not None:
        c = backward_to_pixels(targets, multipliers.regions, LRPMode(epsilon=epsilon))
        pixels = (c * targets.x).sum(2).transpose(0, 1)
        by_encoder = regions.sum(-1) - pixels.sum((2, 3))
    bias, by_epsilon = multipliers.absorbed.permute(1, 2, 0)
    words = word_relevance(multipliers)
    _require_closed(
        targets, multipliers.total.T, (regions, words, bias[..., None], by_epsilon[..., None])
    )
    return Attribution(multipliers.total.T, regions, words, pixels, bias, by_epsilon, by_encoder)


def attn_lrp(targets: Targets, epsilon: float | None = None) -> Attribution:
    """AttnLRP (Achtibat et al. 2024): LRP that also asks why attention looked where it did.

    Weights of attention and values get half of the relevance of their product each. The weights'
    half goes on through the softmax and the energies, to regions and words.
    """
    return lrp(targets, epsilon, through_attention=True)


def _require_own_logits(targets: Targets, total: Tensor) -> None:
    """Refuse to explain other numbers than the captioner's own: a rule has changed what it says."""
    if targets.model.training:
        return  # dropout draws anew in every pass
    with torch.no_grad():
        logits = targets.model(targets.regions, targets.tokens).logits
    own, among = targets.chosen(logits), logits[logits.isfinite()]
    require_same(type(targets.model).__name__, total, own, among, ROUNDING[own.dtype])


def _require_closed(targets: Targets, total: Tensor, parts: Sequence[Tensor]) -> None:
    """Refuse numbers that do not add up to the logit: some operation has lost or made relevance."""
    accounted = sum(part.sum(-1) for part in parts)
    size = total.abs() + sum(part.abs().sum(-1) for part in parts)
    gap = (total - accounted).abs() / size
    tolerance = 1e-6 if total.dtype == torch.float64 else 1e-3
    if not bool((gap <= tolerance).all()):
        raise NotApplicableError(
            f"{type(targets.model).__name__}: {100 * float(gap.max()):.2g} % of a word's score is "
            "not accounted for, so that LRP would be wrong: an operation joins constants in a way "
            "that no rule sees"
        )
