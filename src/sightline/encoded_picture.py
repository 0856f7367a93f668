"""A picture opened and encoded once: what captioning, checking and explaining all start from."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL.Image import Image
from torch import Tensor

from sightline.regions import Regions, join


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """The picture, what the encoder was given of it, and what the encoder made of that."""

    image: Image  # as a person sees it: upright, RGB
    pixels: Tensor  # (1, size, size, 3): bytes, the encoder's input
    window: Tensor  # (1, 4): the part of the picture that the pixels show, in fractions of it
    regions: Regions  # of this one picture, (1, L, D)

    @property
    def size(self) -> tuple[int, int]:
        """`(height, width)` of the picture."""
        return self.image.height, self.image.width


def join_regions(pictures: Sequence[EncodedPicture]) -> Regions:
    """The regions of several pictures of one encoder, as a batch."""
    return join([picture.regions for picture in pictures])
