"""Regions that are made whenever they are asked for, in the place of a region cache."""

from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.encoders.content_hashes import content_hash
from sightline.encoders.encoder import Encoder
from sightline.encoders.preprocessing import mirror
from sightline.encoders.region_cache import Mirrored, RegionCache
from sightline.errors import CacheError
from sightline.regions import Regions

_AT_ONCE = 8  # pictures that are encoded together


class RegionsOnDemand(RegionCache):
    """For encoders whose regions are many and wide: a thousand pictures would fill a disk."""

    def __init__(self, pictures: Sequence[Path | Image | Mirrored], encoder: Encoder) -> None:
        self.encoder = encoder
        self.grid, self.dim = encoder.grid, encoder.dim
        self.folder = Path(encoder.name)
        self._pictures = {self.key(picture): picture for picture in pictures}
        self._keys = list(self._pictures)

    def key(self, picture: Path | Image | Mirrored) -> bytes:
        """A file goes by its name: it is not read for it."""
        if isinstance(picture, Path):
            return content_hash(str(picture).encode())
        if isinstance(picture, Mirrored):
            return content_hash(b"mirrored" + self.key(picture.picture))
        return content_hash(picture.tobytes())

    def keys(self) -> Set[bytes]:
        return frozenset(self._keys)

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        numbers = {key: row for row, key in enumerate(self._keys)}
        if missing := sum(key not in numbers for key in keys):
            raise CacheError(f"{missing} of {len(keys)} pictures were not given")
        return np.array([numbers[key] for key in keys], np.int64)

    @torch.no_grad()
    def regions(self, rows: NDArray[np.int64]) -> Regions:
        device = self.encoder.mean.device
        parts = []
        for first in range(0, len(rows), _AT_ONCE):
            prepared = [self._prepare(int(row)) for row in rows[first : first + _AT_ONCE]]
            pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared]))
            windows = torch.tensor([window for _, window in prepared])
            parts.append(self.encoder(pixels.to(device), windows.to(device)).to("cpu"))
        return Regions(
            torch.cat([part.vectors for part in parts]),
            torch.cat([part.mask for part in parts]),
            torch.cat([part.boxes for part in parts]),
        )

    def _prepare(self, row: int) -> tuple[NDArray[np.uint8], tuple[float, float, float, float]]:
        picture = self._pictures[self._keys[row]]
        load = self.encoder.preprocessing.load
        if isinstance(picture, Mirrored):
            return mirror(*load(picture.picture))
        return load(picture)
