"""Regions that are the pixels themselves: what a captioner is shown whose inside is not known."""

import hashlib
import json
from typing import Any

import torch
from torch import Tensor, nn

from sightline.encoders.encoder import Encoder
from sightline.encoders.preprocessing import Preprocessing
from sightline.errors import SightlineError
from sightline.regions import Regions

CELLS = 7  # a side: parts of the picture that can be hidden one by one


class PixelEncoder(Encoder):
    """Cuts a picture into cells. A region is the pixels of a cell, from 0 to 1.

    So can parts of a picture be hidden, or other pictures put in its place, before any captioner.

    >>> encoder = PixelEncoder("a captioner", 224)
    >>> encoder.grid, encoder.dim
    ((7, 7), 3072)
    """

    cached = False  # (pixels are quickly cut)
    stops_at_regions = True

    def __init__(self, name: str, side: int) -> None:
        nn.Module.__init__(self)
        self.name, self.stage = name, "pixels"
        self.cell = max(round(side / CELLS), 1)
        self.preprocessing = Preprocessing(CELLS * self.cell)
        self.grid, self.dim = (CELLS, CELLS), 3 * self.cell**2
        self.register_buffer("mean", torch.zeros(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.full((1, 3, 1, 1), 255.0), persistent=False)

    @property
    def fingerprint(self) -> str:
        facts = [self.name, self.stage, self.preprocessing.to_json()]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.preprocessing.size}

    def at_size(self, size: int) -> Encoder:
        return PixelEncoder(self.name, size).to(self.mean.device)

    def classify(self, pixels: Tensor) -> Tensor:
        raise SightlineError(f"{self.name}: knows no ImageNet classes")

    def features(self, x: Tensor) -> Tensor:
        """The pixels of each cell `(B, dim, 7, 7)`."""
        return torch.unflatten(nn.functional.unfold(x, self.cell, stride=self.cell), 2, self.grid)

    def forward(self, pixels: Tensor, windows: Tensor) -> Regions:
        vectors = self.vectors(self.normalise(pixels))
        mask = vectors.new_ones(vectors.shape[:2], dtype=torch.bool)
        return Regions(vectors, mask, self.boxes(windows))


def put_together(regions: Regions, cell: int) -> Tensor:
    """The pictures `(B, H, W, 3)` of regions of cells, as bytes; hidden cells have the mean colour.

    >>> encoder = PixelEncoder("", 14)
    >>> picture = torch.randint(256, (1, 14, 14, 3), dtype=torch.uint8)
    >>> regions = encoder(picture, torch.tensor([[0.0, 0.0, 1.0, 1.0]]))
    >>> put_together(regions, encoder.cell).equal(picture)
    True
    """
    colours = torch.unflatten(regions.vectors, 2, (3, cell**2))
    visible = regions.mask[..., None, None].to(colours)
    count = (visible.sum(1, keepdim=True) * cell**2).clamp(min=1)
    mean = (colours * visible).sum((1, 3), keepdim=True) / count
    shown = torch.where(visible > 0, colours, mean.expand_as(colours)).flatten(2)
    side = CELLS * cell
    pixels = nn.functional.fold(shown.mT, (side, side), cell, stride=cell)
    return (255 * pixels).round().clamp(0, 255).byte().permute(0, 2, 3, 1)
