"""A captioner that has unlearnt what it knew, to see whether an explanation notices.

An explanation that stays the same says nothing of what was learnt (Adebayo et al. 2018).
"""

import copy

import numpy as np
import torch
from numpy.typing import NDArray

from sightline.captioner import Captioner


def shuffle_weights(captioner: Captioner, seed: int = 0) -> Captioner:
    """The same encoder with a model whose weights are shuffled, each among those of its tensor.

    The encoder keeps its weights: methods that see edges alone would look right with it.

    >>> shuffle_weights(captioner).caption("photo.jpg").text  # doctest: +SKIP
    'umbrella of the the'
    """
    generator = torch.Generator().manual_seed(seed)
    model = copy.deepcopy(captioner.model)
    with torch.no_grad():
        for parameter in model.parameters():
            order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return Captioner(captioner.encoder, model, captioner.vocabulary, captioner.options)


def rank_correlation(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Spearman's, of numbers in the same order; 0 if either are all the same.

    >>> round(rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([0.0, 1.0, 7.0])), 6)
    1.0
    """
    ranks = [_ranks(numbers.ravel()) for numbers in (one, other)]
    deviations = [rank - rank.mean() for rank in ranks]
    size = np.prod([np.sqrt((d**2).sum()) for d in deviations])
    return float((deviations[0] * deviations[1]).sum() / size) if size > 0 else 0.0


def _ranks(numbers: NDArray[np.floating]) -> NDArray[np.float64]:
    """Ranks from 0; equal numbers share the mean of theirs."""
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return np.asarray((last - (counts + 1) / 2)[which])
