"""Layer-wise relevance propagation through any captioner (paper 4, section 3.2, algorithm 1)."""

from sightline.explain.attribution import Attribution
from sightline.explain.backward import backward_to_pixels, backward_to_regions, word_relevance
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets

EPSILON = 0.01  # paper 4, section 4


def lrp(targets: Targets, epsilon: float = EPSILON) -> Attribution:
    """The relevance of pixels, regions and previous words, and what was absorbed on the way.

    It begins with the word's logit. LRPMode of the regions is that of all words up to the one
    explained, summed (algorithm 1, line 9).
    """
    vectors = targets.regions.vectors
    mode = LRPMode(len(vectors), epsilon, vectors.dtype, vectors.device)
    multipliers = backward_to_regions(targets, mode)
    assert multipliers.absorbed is not None
    regions = (multipliers.regions * vectors).sum(-1).transpose(0, 1)
    pixels = by_encoder = None
    if targets.x is not None:
        c = backward_to_pixels(targets, multipliers.regions, LRPMode(epsilon=epsilon))
        pixels = (c * targets.x).sum(2).transpose(0, 1)
        by_encoder = regions.sum(-1) - pixels.sum((2, 3))
    bias, by_epsilon = multipliers.absorbed.permute(1, 2, 0)
    return Attribution(
        multipliers.total.T,
        regions,
        word_relevance(multipliers),
        pixels,
        bias,
        by_epsilon,
        by_encoder,
    )
