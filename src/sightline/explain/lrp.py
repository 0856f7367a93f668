"""Layer-wise relevance propagation through any captioner (paper 4, section 3.2, algorithm 1)."""

import torch
from torch import Tensor

from sightline.explain.pulling import Pulled, pull_regions, pull_words
from sightline.explain.relevance import Relevance
from sightline.explain.subject import Evidence, Subject

EPSILON = 0.01  # paper 4, section 4


def lrp(subject: Subject, epsilon: float = EPSILON) -> Evidence:
    """The relevance of pixels, regions and previous words, and what was absorbed on the way.

    It begins with the word's logit. Relevance of the regions is that of all words up to the one
    explained, summed (algorithm 1, line 9).
    """
    vectors = subject.regions.vectors
    mode = Relevance(len(vectors), epsilon, vectors.dtype, vectors.device)
    pulled = pull_words(subject, mode)
    assert pulled.ledger is not None
    regions = (pulled.regions * vectors).sum(-1).transpose(0, 1)
    pixels = absorbed = None
    if subject.x is not None:
        c = pull_regions(subject, pulled.regions, Relevance(epsilon=epsilon))
        pixels = (c * subject.x).sum(2).transpose(0, 1)
        absorbed = regions.sum(-1) - pixels.sum((2, 3))
    bias, by_epsilon = pulled.ledger.permute(1, 2, 0)
    return Evidence(
        pulled.total.T,
        regions,
        word_relevance(pulled, subject),
        pixels,
        bias,
        by_epsilon,
        absorbed,
    )


def word_relevance(pulled: Pulled, subject: Subject) -> Tensor:
    """Σ x c over each previous word's vector `(B, N, T)`."""
    relevance = torch.zeros(*pulled.total.shape, subject.tokens.shape[2], dtype=pulled.total.dtype)
    for vectors, c in pulled.words:
        relevance = relevance + (vectors * c).sum(-1)
    return relevance.transpose(0, 1)
