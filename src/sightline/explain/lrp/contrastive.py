"""LRP whose pixels keep the word: what the caption's previous words claim is not shown again."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from sightline.explain.attribution import Attribution
from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.explain.upsampling import interpolate

NEIGHBOURHOOD = 4  # regions across: where a pixel's relevance is compared with that of others


def contrastive_lrp(targets: Targets, epsilon: float | None = None) -> Attribution:
    """LRP to the regions (`lrp`), and from there to the pixels in a way that forgets no word.

    Under the αβ-rule alone, most of what a word's pixels show is what any word's would: the thing
    that stands out. So how much a place has is decided by the regions, and the αβ-rule decides
    within a neighbourhood alone:

        map = A² (R⁺ s)³,   A = P⁺ / mean of P⁺ nearby,   s = r / (r + Σ r of previous words)

    with the relevance R of regions, P of pixels, and r = R⁺ / Σ R⁺: the share s of a region is what
    the word has of it, if previous words are asked as well (Gu et al. 2018 contrast classes in this
    way). Later words are not asked: no word is explained by them. What speaks against the word is
    treated alike, but for s. The powers and the neighbourhood were chosen on Flickr8k's dev split
    (docs/localisation.md).

    Regions and words have the relevance of `lrp`. The map adds up to the relevance of the regions
    without what previous words claim of it; that part is what `encoder` accounts for.
    """
    plain = lrp(targets, epsilon)
    if plain.pixels is None:
        return plain
    assert targets.encoder is not None
    supporting, opposing = plain.regions.clamp(min=0), (-plain.regions).clamp(min=0)
    claimed = supporting * _shares(targets, supporting, epsilon)
    on_grid = targets.encoder.on_grid
    pixels = _spread(plain.pixels, claimed, on_grid) - _spread(-plain.pixels, opposing, on_grid)
    shown = pixels.sum((2, 3))
    return plain._replace(pixels=pixels, encoder=plain.regions.sum(-1) - shown)


def _shares(targets: Targets, supporting: Tensor, epsilon: float | None) -> Tensor:
    """The word's share `(B, N, L)` of each region, among all words up to it."""
    said = targets.tokens[:, 0, 1:]  # (B, M): the word at place m
    if not said.shape[1]:
        return torch.ones_like(supporting)
    places = torch.arange(said.shape[1], device=said.device).expand_as(said)
    previous = lrp(replace(targets, places=places, words=said, encoder=None, x=None), epsilon)
    earlier = places[:, None] < targets.places[..., None]  # (B, N, M)
    other = said[:, None] != targets.words[..., None]
    mine = _normalised(supporting)
    theirs = (earlier & other).to(mine) @ _normalised(previous.regions.clamp(min=0))
    return torch.where(mine > 0, mine / (mine + theirs).clamp(min=1e-30), 0)


def _normalised(supporting: Tensor) -> Tensor:
    return supporting / supporting.sum(-1, keepdim=True).clamp(min=1e-30)


def _spread(pixels: Tensor, amounts: Tensor, on_grid: Callable[[Tensor], Tensor]) -> Tensor:
    """Maps `(B, N, h, w)` of positive numbers that add up to the sum of `amounts` `(B, N, L)`.

    Places are weighed by the cube of their regions' amounts; within a neighbourhood, pixels are by
    the square of how much their relevance stands out.
    """
    # (Relative to the largest: the cubes of small numbers would vanish.)
    weights = on_grid((amounts / amounts.amax(-1, keepdim=True).clamp(min=1e-30)).pow(3))
    height, width = pixels.shape[2:]
    rows, columns = weights.shape[2:]
    positive = pixels.clamp(min=0)
    nearby = _average(positive, NEIGHBOURHOOD * height // rows, NEIGHBOURHOOD * width // columns)
    # Where there is nearly nothing, nothing stands out.
    floor = 1e-3 * positive.mean((2, 3), keepdim=True)
    accent = positive / (nearby + floor).clamp(min=1e-30)
    maps = accent.square() * interpolate(weights, (height, width))
    total = maps.sum((2, 3), keepdim=True)
    return maps * (amounts.sum(-1)[..., None, None] / total.clamp(min=1e-30))


def _average(maps: Tensor, height: int, width: int) -> Tensor:
    """The mean of the neighbours within the map, down and then across."""
    for kernel in ((height // 2 * 2 + 1, 1), (1, width // 2 * 2 + 1)):
        padding = (kernel[0] // 2, kernel[1] // 2)
        maps = functional.avg_pool2d(maps, kernel, 1, padding, count_include_pad=False)
    return maps
