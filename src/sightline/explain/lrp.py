"""Layer-wise relevance propagation through any captioner (paper 4, section 3.2, algorithm 1)."""

import torch
from torch import Tensor

from sightline.explain.pulling import pull_previous, pull_regions, pull_words
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
        word_relevance(pulled.words),
        pixels,
        bias,
        by_epsilon,
        absorbed,
    )


def lrp_words(subject: Subject, epsilon: float = EPSILON) -> Tensor:
    """The relevance of previous words alone `(B, N, T)`, `Evidence.words` of `lrp`.

    It takes a fraction of the time: what the picture says is not followed to its regions.

    >>> from sightline.encoders.regions import Regions
    >>> from sightline.models.registry import create_model
    >>> model = create_model("soft_attention", 6, 5, {"state_width": 4}).eval()
    >>> regions = Regions(torch.ones(1, 3, 5), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> asked = torch.tensor([[[1, 4]]]), torch.tensor([[0, 1]]), torch.tensor([[4, 5]])
    >>> lrp_words(Subject(model, regions, *asked)).shape
    torch.Size([1, 2, 2])
    """
    return word_relevance(pull_previous(subject, Relevance(epsilon=epsilon)))


def word_relevance(words: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Σ x c over each previous word's vector `(B, N, T)`, of vectors and multipliers."""
    return torch.stack([(vectors * c).sum(-1) for vectors, c in words]).sum(0).transpose(0, 1)
