"""Regions that a detector made, in the place of an encoder: looked up by the names of pictures."""

import base64
import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sightline.encoders.content_hashes import ContentHashes, content_hash
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed import PrecomputedRegions, TsvRegions, read_npz
from sightline.encoders.preprocessing import Preprocessing
from sightline.errors import DataError, PictureError, SightlineError
from sightline.files import MEGABYTE, expand, open_regular
from sightline.regions import Regions

PRECOMPUTED = "precomputed"  # the name by which a recipe asks for it
_SHOWN_SIZE = 224  # pictures are opened at twice this, to be shown


class FeatureFiles:
    """A folder with an `.npz` for each picture, or a `.tsv` with all of them.

    They are called as the picture's file is, or by the number that its name ends in:
    `COCO_val2014_000000000042.jpg` is `COCO_val2014_000000000042` or `42`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @functools.cached_property
    def _table(self) -> TsvRegions:
        return TsvRegions(self.path)

    def read(self, picture: Path | str) -> PrecomputedRegions:
        """The regions of a picture."""
        if self.path.is_dir():
            return read_npz(self._file(picture))
        for name in _names(picture):
            if name in self._table:
                return self._table[name]
        raise self._missing(picture)

    def key(self, picture: Path | str, hashes: ContentHashes) -> bytes:
        """What the regions of a picture are called in a cache: other features, another key."""
        if self.path.is_dir():
            return hashes.of(self._file(picture))
        # To hash the lines of a .tsv would be to read it all.
        try:
            status = self.path.stat()
        except OSError:
            raise self._nowhere() from None
        version = f"{self.path.name} {status.st_size} {status.st_mtime_ns}"
        return content_hash(f"{version} {Path(picture).stem}".encode())

    def width(self) -> int:
        """How many numbers a region has: those of the first picture."""
        if self.path.is_dir():
            first = min(self.path.glob("*.npz"), default=None)
            if first is None:
                raise DataError(f"{self.path}: no .npz file is in this folder")
            return read_npz(first).vectors.shape[1]
        try:
            with open_regular(self.path, 1_000_000 * MEGABYTE) as file:
                while line := file.readline(64 * MEGABYTE):
                    fields = line.rstrip(b"\r\n").split(b"\t")
                    if fields[0] != b"image_id":
                        return len(base64.b64decode(fields[5])) // (4 * int(fields[3]))
        except OSError:
            raise self._nowhere() from None
        except (ValueError, IndexError, ZeroDivisionError):
            pass
        raise DataError(f"{self.path}: no .tsv of bottom-up attention features")

    def _file(self, picture: Path | str) -> Path:
        for name in _names(picture):
            if (path := self.path / f"{name}.npz").is_file():
                return path
        raise self._missing(picture)

    def _missing(self, picture: Path | str) -> PictureError:
        return PictureError(f"{picture}: {self.path} has no features of this picture")

    def _nowhere(self) -> DataError:
        return DataError(f"{self.path}: the features are not there; put them back, or a link")


def _names(picture: Path | str) -> list[str]:
    """What the features of a picture may be called."""
    if not isinstance(picture, Path | str):
        raise PictureError(
            "features of a detector go by the names of pictures: give a path, not a picture in "
            "memory or mirrored"
        )
    stem = Path(picture).stem
    number = re.search(r"\d+$", stem)
    return [stem] if number is None else [stem, str(int(number[0]))]


class PrecomputedEncoder(Encoder):
    """Looks up what other encoders compute; it has no pixels, so explanations end at its boxes."""

    sees_pixels = False

    def __init__(self, features: Path, dim: int | None = None) -> None:
        nn.Module.__init__(self)
        self.files = FeatureFiles(expand(features).absolute())
        self.name, self.stage, self.grid = PRECOMPUTED, "regions", (0, 0)
        self.preprocessing = Preprocessing(_SHOWN_SIZE)
        # A checkpoint knows the width, and loads without the files.
        self.dim = dim or self.files.width()

    @property
    def fingerprint(self) -> str:
        """Of the width alone: keys of pictures are those of their features."""
        return hashlib.sha256(json.dumps([self.name, self.dim]).encode()).hexdigest()[:16]

    def at_size(self, size: int) -> Encoder:
        return self

    def look_up(self, picture: Any) -> PrecomputedRegions:
        """The regions of a picture; it need not exist itself."""
        regions = self.files.read(picture)
        if regions.vectors.shape[1] != self.dim:
            raise PictureError(
                f"{picture}: its features have {regions.vectors.shape[1]} numbers, not {self.dim}"
            )
        return regions

    def normalise(self, pixels: Tensor) -> Tensor:
        raise self._no_pixels()

    def features(self, x: Tensor) -> Tensor:
        raise self._no_pixels()

    def classify(self, pixels: Tensor) -> Tensor:
        raise self._no_pixels()

    def forward(self, pixels: Tensor, windows: Tensor) -> Regions:
        raise self._no_pixels()

    def _no_pixels(self) -> SightlineError:
        return SightlineError("precomputed features: there is no network from pixels to them")

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "features": str(self.files.path), "dim": self.dim}
