"""Occlusion: what a word loses when a part of the picture or a word is hidden. Slow, and true."""

import torch
from torch import Tensor

from sightline.data.vocabulary import UNKNOWN
from sightline.encoders.encoder import Encoder
from sightline.encoders.regions import Regions, grid_boxes
from sightline.explain.subject import Evidence, Subject
from sightline.progress import progress

PATIENCE = 2.0  # seconds until it is said how far this is


@torch.no_grad()
def occlusion(subject: Subject, batch: int = 16) -> Evidence:
    """How much each word's logit falls when a region, or a word before it, is hidden.

    With an encoder, the pixels of a region's cell are painted over with its mean colour and the
    picture is encoded anew; without one, the region is taken away. A word is replaced by the
    unknown word.
    """
    model, regions = subject.model, subject.regions
    total = subject.chosen(model(regions, subject.tokens).logits)
    hidden = range(regions.mask.shape[1])
    falls: list[Tensor] = []
    with progress(None, "occlusion", total=len(hidden), unit="region", delay=PATIENCE) as bar:
        for first in hidden[::batch]:
            some = hidden[first : first + batch]
            falls += [total - logits for logits in _without(subject, some)]
            bar.update(len(some))
    by_region = torch.stack(falls, 2) * regions.mask[:, None]
    return Evidence(total, by_region, _without_words(subject, total))


def _without(subject: Subject, hidden: range) -> list[Tensor]:
    """The logits `(B, N)` of the words asked for without each of some regions."""
    if subject.encoder is None or subject.x is None:
        parts = [_take_away(subject.regions, region) for region in hidden]
        vectors, mask = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    else:
        x = torch.cat([_paint_over(subject.encoder, subject.x, region) for region in hidden])
        vectors = subject.encoder.features(x).flatten(2).transpose(1, 2)
        mask = subject.regions.mask.repeat(len(hidden), 1)
    together = Regions(vectors, mask, subject.regions.boxes.repeat(len(hidden), 1, 1))
    logits = subject.model(together, subject.tokens.repeat(len(hidden), 1, 1)).logits
    return [subject.chosen(own) for own in logits.split(len(subject.regions))]


def _take_away(regions: Regions, region: int) -> tuple[Tensor, Tensor]:
    """Vectors and mask without a region."""
    mask = regions.mask.clone()
    mask[:, region] = False
    # A picture whose only region is hidden keeps it, as nothing.
    empty = ~mask.any(1)
    mask[empty, region] = True
    return regions.vectors * ~(empty[:, None, None] & mask[..., None]), mask


def _paint_over(encoder: Encoder, x: Tensor, region: int) -> Tensor:
    """The encoder's input with its mean colour in place of a cell."""
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    box = grid_boxes(*encoder.grid, whole)[0, region]
    height, width = x.shape[2:]
    x0, y0, x1, y1 = (box * torch.tensor([width, height, width, height])).round().int().tolist()
    painted = x.clone()
    painted[:, :, y0:y1, x0:x1] = x.mean((2, 3), keepdim=True)
    return painted


def _without_words(subject: Subject, total: Tensor) -> Tensor:
    """How much each word asked for loses without each word before it `(B, N, T)`."""
    words = subject.tokens.shape[2]
    rows = subject.tokens.repeat(1, words, 1)
    rows.diagonal(dim1=1, dim2=2).fill_(UNKNOWN)
    logits = subject.model(subject.regions, rows).logits
    changed = torch.stack([subject.chosen(row) for row in logits.split(1, 1)], 2)
    before = torch.arange(words) <= subject.places[..., None]
    return (total[..., None] - changed) * before
