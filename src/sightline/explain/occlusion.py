"""Occlusion: how much a word's score falls when a region or a previous word is hidden."""

import torch
from torch import Tensor

from sightline.encoders.encoder import Encoder
from sightline.explain.attribution import Attribution
from sightline.explain.targets import Targets
from sightline.progress import advance, progress
from sightline.regions import Regions
from sightline.text.vocabulary import UNKNOWN

PATIENCE = 2.0  # seconds until it is said how far this is


@torch.no_grad()
def occlusion(targets: Targets, batch: int = 16) -> Attribution:
    """How much each word's logit falls when a region, or a word before it, is hidden.

    With an encoder, the pixels of a region's cell are covered with its mean colour and the
    picture is encoded anew; without one, the region is taken away. A word is replaced by the
    unknown word.
    """
    model, regions = targets.model, targets.regions
    total = targets.chosen(model(regions, targets.tokens).logits)
    hidden = range(regions.mask.shape[1])
    falls: list[Tensor] = []
    with progress(None, "occlusion", total=len(hidden), unit="region", delay=PATIENCE) as bar:
        for first in hidden[::batch]:
            advance(first, len(hidden))
            some = hidden[first : first + batch]
            falls += [total - logits for logits in _without(targets, some)]
            bar.update(len(some))
    by_region = torch.stack(falls, 2) * regions.mask[:, None]
    return Attribution(total, by_region, _without_words(targets, total))


def _without(targets: Targets, hidden: range) -> list[Tensor]:
    """The logits `(B, N)` of the words asked for without each of some regions."""
    if targets.encoder is None or targets.x is None:
        parts = [_take_away(targets.regions, region) for region in hidden]
        vectors, mask = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    else:
        x = torch.cat([_cover(targets.encoder, targets.x, region) for region in hidden])
        vectors = targets.encoder.vectors(x)
        mask = targets.regions.mask.repeat(len(hidden), 1)
    together = Regions(vectors, mask, targets.regions.boxes.repeat(len(hidden), 1, 1))
    logits = targets.model(together, targets.tokens.repeat(len(hidden), 1, 1)).logits
    return [targets.chosen(region_logits) for region_logits in logits.split(len(targets.regions))]


def _take_away(regions: Regions, region: int) -> tuple[Tensor, Tensor]:
    """Vectors and mask without a region."""
    mask = regions.mask.clone()
    mask[:, region] = False
    # A picture whose only region is hidden keeps it, as nothing.
    empty = ~mask.any(1)
    mask[empty, region] = True
    return regions.vectors * ~(empty[:, None, None] & mask[..., None]), mask


def _cover(encoder: Encoder, x: Tensor, region: int) -> Tensor:
    """The encoder's input with its mean colour in place of a cell."""
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    box = encoder.boxes(whole)[0, region]
    height, width = x.shape[2:]
    x0, y0, x1, y1 = (box * torch.tensor([width, height, width, height])).round().int().tolist()
    covered = x.clone()
    covered[:, :, y0:y1, x0:x1] = x.mean((2, 3), keepdim=True)
    return covered


def _without_words(targets: Targets, total: Tensor) -> Tensor:
    """How much each word asked for loses without each word before it `(B, N, T)`."""
    words = targets.tokens.shape[2]
    rows = targets.tokens.repeat(1, words, 1)
    rows.diagonal(dim1=1, dim2=2).fill_(UNKNOWN)
    logits = targets.model(targets.regions, rows).logits
    changed = torch.stack([targets.chosen(row) for row in logits.split(1, 1)], 2)
    before = torch.arange(words, device=total.device) <= targets.places[..., None]
    return (total[..., None] - changed) * before
