"""The region cache of features whose pictures have boxes of their own, and any number of them.

Beside the files of every cache it has `boxes.f32`, four numbers for each region. A record of
`index.bin` holds the picture's key, the number of its first region, and how many it has.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.encoders.precomputed import PrecomputedRegions, collate
from sightline.encoders.precomputed_encoder import FeatureFiles, PrecomputedEncoder
from sightline.encoders.region_cache import Mirrored, RegionCache
from sightline.errors import CacheError
from sightline.regions import Regions


class BoxCache(RegionCache):
    """Regions of pictures by the content of their features."""

    record = np.dtype([("key", "V16"), ("first", "<i8"), ("count", "<i8")])
    files: FeatureFiles

    @classmethod
    def for_features(cls, encoder: PrecomputedEncoder, root: Path | None = None) -> "BoxCache":
        """The cache of features under `root` (default: the user's cache), made where absent."""
        cache = cls.for_encoder(encoder, root)
        assert isinstance(cache, BoxCache)
        cache.files = encoder.files
        return cache

    def key(self, picture: Path | Image | Mirrored) -> bytes:
        return self.files.key(picture, self.hashes)  # type: ignore[arg-type]

    def regions(self, rows: NDArray[np.int64]) -> Regions:
        first, counts = (self._records[name][rows].tolist() for name in ("first", "count"))
        vectors = [np.empty((count, self.dim), np.float16) for count in counts]
        boxes = [np.empty((count, 4), np.float32) for count in counts]
        self._read("vectors.f16", vectors, (2 * self.dim * start for start in first))
        self._read("boxes.f32", boxes, (16 * start for start in first))
        return collate(
            [
                PrecomputedRegions(self._finite(v.astype(np.float32)), torch.from_numpy(b))
                for v, b in zip(vectors, boxes, strict=True)
            ]
        )

    def _check_records(self, records: NDArray[Any]) -> None:
        """Regions of a picture lie where those of the pictures before it end."""
        counts = records["count"]
        ends = np.cumsum(counts)
        if (counts < 0).any() or not np.array_equal(records["first"], ends - counts):
            raise CacheError(f"{self.folder / 'index.bin'}: damaged; delete {self.folder}")

    def _sizes(self, records: NDArray[Any]) -> dict[str, int]:
        regions = int(records["count"].sum())
        return {"vectors.f16": 2 * regions * self.dim, "boxes.f32": 16 * regions}

    def reload(self) -> None:
        super().reload()
        self._next = int(self._records["count"].sum())  # the first region to be appended

    def _pack(
        self, keys: Sequence[bytes], regions: Regions, windows: NDArray[Any]
    ) -> tuple[list[bytes], NDArray[Any]]:
        counts = regions.mask.sum(1).numpy()
        records = np.empty(len(keys), self.record)
        records["key"] = np.frombuffer(b"".join(keys), "V16")
        records["count"] = counts
        records["first"] = self._next + np.cumsum(counts) - counts
        self._next += int(counts.sum())
        vectors = regions.vectors[regions.mask].to(torch.float16).numpy().tobytes()
        return [vectors, regions.boxes[regions.mask].numpy().tobytes()], records
