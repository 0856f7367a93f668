"""The two colours of relevance, the same in figures and on pages, and pictures under them.

Orange and blue: the pair that every common kind of colour blindness tells apart.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Colour = tuple[int, int, int]

FOR: Colour = (255, 128, 0)  # speaks for a word: orange
AGAINST: Colour = (30, 110, 255)  # speaks against it: blue
OPACITY = 0.85  # of the strongest relevance


def overlay(ground: Image.Image, values: NDArray[np.float32]) -> Image.Image:
    """A picture in grey under values `(h, w)` from -1 to 1: the stronger, the denser the colour.

    >>> grey = Image.new("RGB", (3, 1), (101, 101, 101))
    >>> [tuple(p) for p in np.asarray(overlay(grey, np.float32([[-1, 0, 1]])))[0].tolist()]
    [(41, 109, 232), (101, 101, 101), (232, 124, 15)]
    """
    size = (values.shape[1], values.shape[0])
    grey = np.asarray(ground.convert("L").resize(size), np.float32)[..., None]
    colour = np.where(values[..., None] > 0, FOR, AGAINST)
    density = OPACITY * np.abs(values)[..., None]
    return Image.fromarray(np.round(grey + density * (colour - grey)).astype(np.uint8))


def css(colour: Colour) -> str:
    """A colour as a page writes it.

    >>> css(FOR)
    'rgb(255 128 0)'
    """
    return f"rgb({colour[0]} {colour[1]} {colour[2]})"
