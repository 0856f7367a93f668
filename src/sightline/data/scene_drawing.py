"""Pictures of scenes: coloured shapes on textured backgrounds, and exactly where each shape is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.data.dataset import Box

Floats = NDArray[np.float64]

COLOURS = {
    "red": (210, 40, 40),
    "green": (40, 160, 60),
    "blue": (40, 80, 210),
    "yellow": (235, 210, 50),
    "purple": (140, 50, 170),
    "orange": (240, 130, 30),
    "white": (245, 245, 245),
    "black": (20, 20, 20),
}
GREY = (128, 128, 128)


def _star(u: Floats, v: Floats) -> NDArray[np.bool_]:
    """Five points: inside the line from a tip (radius 1) to the next notch (radius 0.45)."""
    half, notch = np.pi / 5, 0.45
    angle = np.abs((np.arctan2(u, -v) + half) % (2 * half) - half)
    dx, dy = notch * np.cos(half) - 1, notch * np.sin(half)
    return np.asarray(np.hypot(u, v) * (np.cos(angle) * dy - np.sin(angle) * dx) < dy)


# Whether a point is inside a shape; u to the right, v downwards, the shape within [-1, 1].
SHAPES: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "circle": lambda u, v: np.hypot(u, v) < 1,
    "square": lambda u, v: np.maximum(abs(u), abs(v)) < 0.85,
    "triangle": lambda u, v: (v < 0.8) & (abs(u) < 0.55 * (v + 1)),
    "star": _star,
    "cross": lambda u, v: (np.minimum(abs(u), abs(v)) < 0.3) & (np.maximum(abs(u), abs(v)) < 0.95),
    "ring": lambda u, v: abs(np.hypot(u, v) - 0.75) < 0.25,
    "heart": lambda u, v: (1.5 * (u**2 + v**2) - 1) ** 3 + 3 * u**2 * v**3 < 0,
    "moon": lambda u, v: (np.hypot(u, v) < 1) & (np.hypot(u - 0.55, v) > 0.75),
}

Texture = Callable[[int, np.random.Generator], Floats]
_TILE = 0.09  # of the picture's width


def _waves(size: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Which tile each pixel is in, across and down, from a random offset."""
    steps = np.arange(size) / (size * _TILE)
    return np.floor(steps + random.random()), np.floor(steps + random.random())


def _striped(size: int, random: np.random.Generator) -> Floats:
    across, _ = _waves(size, random)
    return np.broadcast_to(across % 2, (size, size))


def _checked(size: int, random: np.random.Generator) -> Floats:
    across, down = _waves(size, random)
    return np.asarray((across[None, :] + down[:, None]) % 2)


# Light and dark of a background, 0-1 per pixel.
TEXTURES: dict[str, Texture] = {
    "plain": lambda size, random: np.full((size, size), 0.5),
    "striped": _striped,
    "checked": _checked,
    "speckled": lambda size, random: (random.random((size, size)) < 0.15).astype(float),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """One shape in the picture: position and radius as fractions of its width."""

    shape: str
    colour: tuple[int, int, int]
    x: float
    y: float
    radius: float


def draw_background(texture: str, size: int, random: np.random.Generator) -> Floats:
    """A muted background `(size, size, 3)`, so that every named colour stands out."""
    base = random.uniform(150, 190, 3)
    contrast = random.uniform(18, 30)
    pattern = TEXTURES[texture](size, random)[..., None]
    noise = random.normal(0, 3, (size, size, 1))
    return np.asarray(base + contrast * (pattern - 0.5) + noise)


def draw_mark(canvas: Floats, mark: Mark) -> Box:
    """Draw a shape onto the canvas, its edges smoothed, and return the exact box of its pixels."""
    size, fine = len(canvas), 3  # each pixel is sampled fine x fine times
    low_x, high_x = _window(mark.x, mark.radius, size)
    low_y, high_y = _window(mark.y, mark.radius, size)

    def coordinates(low: int, high: int, centre: float) -> Floats:
        samples = (np.arange((high - low) * fine) + 0.5) / fine + low
        return np.asarray((samples / size - centre) / mark.radius)

    v, u = np.meshgrid(
        coordinates(low_y, high_y, mark.y), coordinates(low_x, high_x, mark.x), indexing="ij"
    )
    inside = SHAPES[mark.shape](u, v).astype(float)
    cover = inside.reshape(high_y - low_y, fine, high_x - low_x, fine).mean((1, 3))
    patch = canvas[low_y:high_y, low_x:high_x]
    patch += cover[..., None] * (np.asarray(mark.colour) - patch)
    rows, columns = np.flatnonzero(cover.any(1)), np.flatnonzero(cover.any(0))
    return (
        (low_x + int(columns[0])) / size,
        (low_y + int(rows[0])) / size,
        (low_x + int(columns[-1]) + 1) / size,
        (low_y + int(rows[-1]) + 1) / size,
    )


def _window(centre: float, radius: float, size: int) -> tuple[int, int]:
    low, high = np.floor((centre - radius) * size), np.ceil((centre + radius) * size)
    return max(int(low), 0), min(int(high), size)


def to_picture(canvas: Floats) -> Image.Image:
    """The canvas as an 8-bit RGB picture."""
    return Image.fromarray(np.clip(np.rint(canvas), 0, 255).astype(np.uint8))
