"""LRP whose pixels keep the word: what the caption's previous words claim is not shown again."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from sightline.explain.attention import attention
from sightline.explain.attribution import Attribution
from sightline.explain.backward import backward_to_pixels
from sightline.explain.lrp.method import lrp
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets
from sightline.explain.upsampling import interpolate

NEIGHBOURHOOD = 4  # regions across: where a pixel's relevance is compared with that of others
COMMON = 0.05  # the share of a map that lies where the encoder's features rest, for any word


def contrastive_lrp(targets: Targets, epsilon: float | None = None) -> Attribution:
    """LRP to the regions (`lrp`), and from there to the pixels in a way that forgets no word.

    Under the αβ-rule alone, most of what a word's pixels show is what any word's would: the thing
    that stands out. So regions decide how much a place has, and the αβ-rule decides within a
    neighbourhood alone, for all words alike:

        map = 0.95 A^1.5 (E s²)² + 0.05 P,   each of the two terms divided by its sum
        E = R⁺ α,   s = e / (e + Σ e of previous words),   e = E / Σ E

    R is the relevance of regions and α the attention to them: what speaks for the word, where the
    captioner looked for it. The share s of a region is what the word has of it, if previous words
    are asked as well (Gu et al. 2018 contrast classes in this way). Later words are not asked: no
    word is explained by them. A = P / mean of P nearby says which pixels the encoder's features
    rest on: P is the relevance of pixels for the squares of all features. So the encoder is passed
    through once for a picture, not once for each of its words. P itself has a small share, for it
    orders the places that the product leaves at nearly nothing. What speaks against the word is
    treated alike, but for α, s and that share. The numbers were chosen on Flickr8k's train and dev
    splits, from which the captioner had not learnt (docs/localisation.md).

    Regions and words have the relevance of `lrp`. The map adds up to the relevance of the regions
    without what previous words claim of it; that part is what `encoder` accounts for.
    """
    if targets.x is None:
        return lrp(targets, epsilon)
    assert targets.encoder is not None
    asked = targets.words.shape[1]
    together, said = _with_previous(targets)
    relevance = lrp(together, epsilon)
    evidence = relevance.regions.clamp(min=0) * attention(together).regions
    shares = _shares(targets, evidence[:, :asked], evidence.take_along_dim(said[..., None], 1))
    parts = {name: part for name, part in relevance._asdict().items() if part is not None}
    plain = relevance._replace(**{name: part[:, :asked] for name, part in parts.items()})
    supporting, opposing = plain.regions.clamp(min=0), (-plain.regions).clamp(min=0)
    on_grid = targets.encoder.on_grid
    common = _common(targets, epsilon)
    accent = _accent(common, on_grid(targets.regions.mask).shape[1:])
    total = (supporting * shares).sum(-1)
    own = _spread(accent, on_grid(evidence[:, :asked] * shares.square()), (1 - COMMON) * total)
    for_any_word = _normalised(common.flatten(1)).view_as(common)[:, None]
    supported = own + COMMON * total[..., None, None] * for_any_word
    pixels = supported - _spread(accent, on_grid(opposing), opposing.sum(-1))
    return plain._replace(pixels=pixels, encoder=plain.regions.sum(-1) - pixels.sum((2, 3)))


def _with_previous(targets: Targets) -> tuple[Targets, Tensor]:
    """Also the words that were said; and where each of them is now, `(B, M)`.

    Of a caption that is explained as a whole, they are among the words asked for already.
    """
    said = targets.tokens[:, 0, 1:]
    places = torch.arange(said.shape[1], device=said.device).expand_as(said)
    same_place = places[..., None] == targets.places[:, None]  # (B, M, N)
    same = same_place & (said[..., None] == targets.words[:, None])
    new = ~same.any(2).all(0)
    together = replace(
        targets,
        places=torch.cat([targets.places, places[:, new]], 1),
        words=torch.cat([targets.words, said[:, new]], 1),
        encoder=None,
        x=None,
    )
    last = targets.words.shape[1] - 1
    return together, torch.where(new, last + new.cumsum(0), same.int().argmax(2))


def _shares(targets: Targets, evidence: Tensor, of_said: Tensor) -> Tensor:
    """The word's share `(B, N, L)` of each region, among it and the words before it."""
    said = targets.tokens[:, 0, 1:]
    places = torch.arange(said.shape[1], device=said.device)
    earlier = places < targets.places[..., None]  # (B, N, M)
    other = said[:, None] != targets.words[..., None]
    mine = _normalised(evidence)
    theirs = (earlier & other).to(mine) @ _normalised(of_said)
    return torch.where(mine > 0, mine / (mine + theirs).clamp(min=1e-30), 0)


def _normalised(supporting: Tensor) -> Tensor:
    return supporting / supporting.sum(-1, keepdim=True).clamp(min=1e-30)


def _common(targets: Targets, epsilon: float | None) -> Tensor:
    """What pixels `(B, h, w)` the encoder's features rest on: their positive relevance."""
    assert targets.x is not None
    mode = LRPMode(epsilon=targets.model.lrp_epsilon if epsilon is None else epsilon)
    c = backward_to_pixels(targets, targets.regions.vectors[None], mode)[0]
    return (c * targets.x).sum(1).clamp(min=0)


def _accent(relevance: Tensor, grid: Sequence[int]) -> Tensor:
    """How much pixels `(B, h, w)` stand out of their neighbourhood, on a grid of regions."""
    _, height, width = relevance.shape
    rows, columns = grid
    nearby = _average(relevance, NEIGHBOURHOOD * height // rows, NEIGHBOURHOOD * width // columns)
    # Where there is nearly nothing, nothing stands out.
    floor = 1e-3 * relevance.mean((1, 2), keepdim=True)
    return relevance / (nearby + floor).clamp(min=1e-30)


def _spread(accent: Tensor, evidence: Tensor, totals: Tensor) -> Tensor:
    """Maps `(B, N, h, w)` of positive numbers that add up to `totals` `(B, N)`.

    Places are weighed by the square of their regions' evidence `(B, N, rows, columns)`; within a
    neighbourhood, pixels are by a power of how much they stand out.
    """
    # (Relative to the largest: the squares of small numbers would vanish.)
    largest = evidence.amax((2, 3), keepdim=True).clamp(min=1e-30)
    weights = interpolate((evidence / largest).square(), (accent.shape[1], accent.shape[2]))
    maps = accent.pow(1.5)[:, None] * weights
    return maps * (totals[..., None, None] / maps.sum((2, 3), keepdim=True).clamp(min=1e-30))


def _average(maps: Tensor, height: int, width: int) -> Tensor:
    """The mean of the neighbours within the map, down and then across."""
    for kernel in ((height // 2 * 2 + 1, 1), (1, width // 2 * 2 + 1)):
        padding = (kernel[0] // 2, kernel[1] // 2)
        maps = functional.avg_pool2d(maps, kernel, 1, padding, count_include_pad=False)
    return maps
