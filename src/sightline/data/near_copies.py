"""Pictures that two datasets share: the same photograph, perhaps resized, squashed or recompressed.

A captioner that was trained on one dataset and is tested on another must not have seen its answers.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image, Resampling

from sightline.data.dataset import CaptionedImage
from sightline.errors import PictureError
from sightline.pictures import open_picture
from sightline.progress import progress

SIDE = 8
BITS = 2 * SIDE * SIDE
MOST = 10  # bits of 128 that near-copies differ in; two photographs differ in 64 on average
_ROWS = 1024


@dataclass(frozen=True, slots=True)
class NearCopy:
    """A picture of each dataset, and in how many bits of 128 they differ."""

    first: CaptionedImage
    second: CaptionedImage
    bits: int


@dataclass(frozen=True)
class NearCopies:
    """The pairs that were found, nearest first, and how many pictures could not be read."""

    pairs: tuple[NearCopy, ...]
    unreadable: int

    def by_split(self) -> Counter[tuple[str, str]]:
        """How many pairs there are of each split of the first dataset and of the second."""
        return Counter((pair.first.split or "-", pair.second.split or "-") for pair in self.pairs)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "unreadable": self.unreadable,
            "pairs": [
                {
                    "first": pair.first.name,
                    "second": pair.second.name,
                    "splits": [pair.first.split, pair.second.split],
                    "bits": pair.bits,
                }
                for pair in self.pairs
            ],
        }


def fingerprint(picture: Image) -> NDArray[np.float32]:
    """128 signs: where a picture of 9 x 9 cells gets darker to the right, and downwards.

    Proportions do not matter, nor do brightness, contrast and size.

    >>> from PIL import Image
    >>> ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None].repeat(64, 0))
    >>> int((fingerprint(ramp) == fingerprint(ramp.resize((90, 90)))).sum())
    128
    """
    cells = np.asarray(picture.convert("L").resize((SIDE + 1, SIDE + 1), Resampling.BOX), np.int16)
    darker = (cells[:-1, 1:] < cells[:-1, :-1], cells[1:, :-1] < cells[:-1, :-1])
    return np.where(np.stack(darker).ravel(), np.float32(1), np.float32(-1))


def near_copies(
    first: Sequence[CaptionedImage],
    second: Sequence[CaptionedImage],
    most: int = MOST,
    *,
    show_progress: bool = False,
) -> NearCopies:
    """All pairs of a picture of each dataset whose fingerprints differ in at most `most` bits."""
    ours, our_signs = _fingerprints(first, show_progress)
    theirs, their_signs = _fingerprints(second, show_progress)
    pairs = []
    for start in range(0, len(ours), _ROWS):
        differing = (BITS - our_signs[start : start + _ROWS] @ their_signs.T) / 2
        for row, column in np.argwhere(differing <= most):
            bits = int(differing[row, column])
            pairs.append(NearCopy(ours[start + row], theirs[column], bits))
    pairs.sort(key=lambda pair: pair.bits)
    unreadable = len(first) + len(second) - len(ours) - len(theirs)
    return NearCopies(tuple(pairs), unreadable)


def _fingerprints(
    images: Sequence[CaptionedImage], show_progress: bool
) -> tuple[list[CaptionedImage], NDArray[np.float32]]:
    """The pictures that can be read, and their fingerprints `(n, 128)`."""

    def read(image: CaptionedImage) -> NDArray[np.float32] | None:
        try:
            return fingerprint(open_picture(image.picture, reduced_to=8 * SIDE))
        except PictureError:
            return None

    with ThreadPoolExecutor() as pool:
        bar = progress(
            pool.map(read, images),
            "reading",
            total=len(images),
            unit="picture",
            show=show_progress,
        )
        rows = list(bar)
    readable = [image for image, row in zip(images, rows, strict=True) if row is not None]
    kept = [row for row in rows if row is not None]
    return readable, np.array(kept, np.float32).reshape(-1, BITS)
