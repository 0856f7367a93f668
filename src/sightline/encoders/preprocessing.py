"""What an encoder does to a picture before its first layer; kept with the encoder."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.pictures import Picture, open_picture

Fit = Literal["squash", "crop"]
Window = tuple[float, float, float, float]
WHOLE: Window = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Preprocessing:
    """From a picture to the square of pixels that an encoder sees.

    `fit` is `"squash"` (the whole picture, resized without regard to its proportions, so that
    every part of it lies in some region) or `"crop"` (the centre, as in paper 1, section 4: short
    side to 256, then 224 x 224; other sizes in the same proportion). `channels`, `mean` and `std`
    (on the scale 0-255) turn those pixels into what the network was trained on.

    This module does not import torch, so worker processes that only read pictures stay light.

    >>> Preprocessing(size=224).prepare(Image.new("RGB", (640, 480)))[1]
    (0.0, 0.0, 1.0, 1.0)
    """

    size: int
    fit: Fit = "squash"
    channels: Literal["RGB", "BGR"] = "RGB"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def prepare(
        self, picture: Image.Image, part: Window = WHOLE
    ) -> tuple[NDArray[np.uint8], Window]:
        """Pixels `(size, size, 3)` of an upright RGB picture, and the window of it that they show.

        With `part`, only that part of what they would show. Cropping and resizing are one step, so
        the window is exact and not rounded to pixels. Bicubic with Pillow's antialiasing;
        `reducing_gap` averages whole blocks of a large picture first, down to three times the
        target, which is several times faster and changes a pixel by about one level in 255.
        """
        box = self._box(picture.width, picture.height, part)
        pixels = picture.resize(
            (self.size, self.size), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0
        )
        window = (
            box[0] / picture.width,
            box[1] / picture.height,
            box[2] / picture.width,
            box[3] / picture.height,
        )
        return np.array(pixels), window

    def load(self, source: Picture, part: Window = WHOLE) -> tuple[NDArray[np.uint8], Window]:
        """`prepare` of a picture, if it is a file decoded no larger than needed.

        A JPEG may be decoded at a fraction of its size for a fraction of the time. Twice the
        input's size is kept, so that the resampling filter still has the last halving to itself.
        """
        return self.prepare(open_picture(source, reduced_to=2 * self.size), part)

    def _box(self, width: int, height: int, part: Window) -> Window:
        if self.fit == "squash":
            shown = (float(width), float(height))
        else:
            shown = (min(width, height) * 224 / 256,) * 2
        left, top = (width - shown[0]) / 2, (height - shown[1]) / 2
        return (
            left + part[0] * shown[0],
            top + part[1] * shown[1],
            left + part[2] * shown[0],
            top + part[3] * shown[1],
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; `from_json` is its inverse."""
        return {**dataclasses.asdict(self), "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Preprocessing":
        """
        >>> same = Preprocessing(size=224, fit="crop")
        >>> Preprocessing.from_json(same.to_json()) == same
        True
        """
        return cls(**{**fields, "mean": tuple(fields["mean"]), "std": tuple(fields["std"])})


def mirror(pixels: NDArray[np.uint8], window: Window) -> tuple[NDArray[np.uint8], Window]:
    """What would have been prepared of the picture with left and right exchanged.

    >>> mirror(np.uint8([[[1], [2]]]), (0.0, 0.0, 0.75, 1.0))[1]
    (0.25, 0.0, 1.0, 1.0)
    """
    left, top, right, bottom = window
    return np.ascontiguousarray(pixels[:, ::-1]), (1 - right, top, 1 - left, bottom)
