"""Occlusion: what a word loses when a part of the picture or a word is hidden. Slow, and true."""

import torch
from torch import Tensor

from sightline.data.vocabulary import UNKNOWN
from sightline.encoders.regions import Regions, grid_boxes
from sightline.explain.subject import Evidence, Subject


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
    falls = []
    for first in hidden[::batch]:
        falls += [total - logits for logits in _without(subject, hidden[first : first + batch])]
    by_region = torch.stack(falls, 2) * regions.mask[:, None]
    return Evidence(total, by_region, _without_words(subject, total))


def _without(subject: Subject, hidden: range) -> list[Tensor]:
    """The logits `(B, N)` of the words asked for without each of some regions."""
    parts = [_hide(subject, region) for region in hidden]
    pictures = len(subject.regions)
    together = Regions(
        torch.cat([part.vectors for part in parts]),
        torch.cat([part.mask for part in parts]),
        torch.cat([part.boxes for part in parts]),
    )
    logits = subject.model(together, subject.tokens.repeat(len(parts), 1, 1)).logits
    return [subject.chosen(own) for own in logits.split(pictures)]


def _hide(subject: Subject, region: int) -> Regions:
    regions = subject.regions
    if subject.encoder is None or subject.x is None:
        mask = regions.mask.clone()
        mask[:, region] = False
        # A picture whose only region is hidden keeps it, as nothing.
        empty = ~mask.any(1)
        mask[empty, region] = True
        vectors = regions.vectors * ~(empty[:, None, None] & mask[..., None])
        return Regions(vectors, mask, regions.boxes)
    x = subject.x.clone()
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    box = grid_boxes(*subject.encoder.grid, whole)[0, region]
    height, width = x.shape[2:]
    x0, y0, x1, y1 = (box * torch.tensor([width, height, width, height])).round().int().tolist()
    x[:, :, y0:y1, x0:x1] = x.mean((2, 3), keepdim=True)
    grid = subject.encoder.features(x)
    return Regions(grid.flatten(2).transpose(1, 2), regions.mask, regions.boxes)


def _without_words(subject: Subject, total: Tensor) -> Tensor:
    """How much each word asked for loses without each word before it `(B, N, T)`."""
    words = subject.tokens.shape[2]
    rows = subject.tokens.repeat(1, words, 1)
    rows.diagonal(dim1=1, dim2=2).fill_(UNKNOWN)
    logits = subject.model(subject.regions, rows).logits
    changed = torch.stack([subject.chosen(row) for row in logits.split(1, 1)], 2)
    before = torch.arange(words) <= subject.places[..., None]
    return (total[..., None] - changed) * before
