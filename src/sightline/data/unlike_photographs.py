"""Pictures that are no photographs: text, charts, drawings and textures, drawn at random."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIDE = 320
_LETTERS = "eeeeetttaaaooiinnsshhrrddlluucmfwygpbvk"
_Random = np.random.Generator
_Colour = tuple[int, int, int]


def unlike_photographs(count: int, seed: int = 0) -> list[Image.Image]:
    """`count` pictures, equally many of each kind; the same ones for the same seed.

    >>> [picture.size for picture in unlike_photographs(2)]
    [(320, 320), (320, 320)]
    """
    kinds = list(KINDS.values())
    return [
        kinds[n % len(kinds)](np.random.default_rng((seed, n))).convert("RGB") for n in range(count)
    ]


def draw_text(random: _Random) -> Image.Image:
    """A page of made-up words, in one or two columns, dark on light or light on dark."""
    paper, ink = _paper_and_ink(random)
    picture = Image.new("RGB", (SIDE, SIDE), paper)
    draw = ImageDraw.Draw(picture)
    size = int(random.integers(7, 30))
    margin, line = int(random.integers(2, 40)), int(size * random.uniform(1.1, 1.8))
    columns = int(random.integers(1, 3)) if size < 14 else 1
    width = (SIDE - margin * (columns + 1)) // columns
    for column in range(columns):
        left = margin + column * (width + margin)
        for top in range(margin, SIDE - margin - size, line):
            if random.random() < 0.1:
                continue  # between paragraphs
            _write(
                draw, random, (left, top), width * (1 if random.random() < 0.8 else 0.5), size, ink
            )
    if random.random() < 0.3:
        picture = picture.rotate(random.uniform(-8, 8), Image.Resampling.BICUBIC, fillcolor=paper)
    return picture


def draw_chart(random: _Random) -> Image.Image:
    """Axes with lines, bars or points, or a pie; ticks and labels."""
    paper, ink = _paper_and_ink(random)
    picture = Image.new("RGB", (SIDE, SIDE), paper)
    draw = ImageDraw.Draw(picture)
    left, top = int(random.integers(20, 60)), int(random.integers(10, 50))
    right, bottom = SIDE - int(random.integers(8, 40)), SIDE - int(random.integers(20, 60))
    if random.random() < 0.15:
        cuts = np.concatenate(
            [[0.0], np.sort(random.uniform(0, 360, random.integers(2, 8))), [360.0]]
        )
        for start, end in itertools.pairwise(cuts):
            draw.pieslice((left, top, right, bottom), start, end, _colour(random), ink)
        return picture
    if random.random() < 0.4:
        for y in np.linspace(top, bottom, random.integers(3, 9)):
            draw.line((left, y, right, y), fill=_mix(paper, ink, 0.2))
    for _ in range(random.integers(1, 6)):
        _draw_series(draw, random, (left, top, right, bottom))
    frame = [(left, top), (left, bottom), (right, bottom)]
    draw.line([*frame, (right, top), (left, top)] if random.random() < 0.5 else frame, fill=ink)
    size = int(random.integers(8, 14))
    for x in np.linspace(left, right, random.integers(2, 8)):
        draw.line((x, bottom, x, bottom + 4), fill=ink)
        _write(draw, random, (x - 6, bottom + 5), 12, size, ink)
    for y in np.linspace(top, bottom, random.integers(2, 8)):
        draw.line((left - 4, y, left, y), fill=ink)
        _write(draw, random, (max(left - 24, 0), y - 5), 12, size, ink)
    _write(draw, random, (left + 20, max(top - 18, 0)), (right - left) / 2, size + 2, ink)
    return picture


def draw_shapes(random: _Random) -> Image.Image:
    """A drawing in flat colours: few large shapes, as in an icon, or many small ones."""
    paper = (255, 255, 255) if random.random() < 0.4 else _colour(random)
    picture = Image.new("RGB", (SIDE, SIDE), paper)
    if random.random() < 0.3:
        other = Image.new("RGB", (SIDE, SIDE), _colour(random))
        picture = Image.composite(picture, other, Image.linear_gradient("L").resize((SIDE, SIDE)))
    draw = ImageDraw.Draw(picture)
    few = random.random() < 0.5
    palette = [_colour(random) for _ in range(random.integers(1, 6))]
    for _ in range(random.integers(1, 8) if few else random.integers(8, 40)):
        radius = random.uniform(30, 140) if few else random.uniform(5, 40)
        centre = random.uniform(60, SIDE - 60, 2) if few else random.uniform(0, SIDE, 2)
        colour = palette[random.integers(len(palette))]
        outline = (0, 0, 0) if random.random() < 0.4 else None
        _draw_shape(draw, random, centre, radius, colour, outline)
    return picture


def draw_texture(random: _Random) -> Image.Image:
    """Noise of some grain, stripes, squares or cells; grey or coloured, over the whole picture."""
    grain = int(2 ** random.uniform(0, 5.5))
    side = max(SIDE // grain, 3)
    kind = random.integers(4)
    y, x = np.mgrid[:SIDE, :SIDE] / grain
    if kind == 0:
        channels = 3 if random.random() < 0.5 else 1
        values = random.uniform(0, 1, (side, side, channels)) ** random.uniform(0.5, 3)
        noise = Image.fromarray((255 * np.broadcast_to(values, (side, side, 3))).astype(np.uint8))
        smooth = Image.Resampling.BICUBIC if random.random() < 0.6 else Image.Resampling.NEAREST
        return noise.resize((SIDE, SIDE), smooth)
    if kind == 1:
        angle = random.uniform(0, np.pi)
        pattern = np.sin((x * np.cos(angle) + y * np.sin(angle)) * random.uniform(0.5, 3))
    elif kind == 2:
        pattern = np.where((np.floor(x) + np.floor(y)) % 2 > 0, 1.0, -1.0)
    else:
        points = random.uniform(0, SIDE, (int(random.integers(10, 120)), 2)) / grain
        nearest = np.full(x.shape, np.inf)  # squared distance to a point
        for across, down in points.tolist():
            np.minimum(nearest, (x - across) ** 2 + (y - down) ** 2, out=nearest)
        pattern = np.sin(np.sqrt(nearest) * random.uniform(0.5, 2) * grain / 8)
    low, high = np.array(_colour(random)), np.array(_colour(random))
    share = (0.5 + 0.5 * pattern)[..., None]
    grainy = low + (high - low) * share + random.normal(0, random.uniform(0, 30), (SIDE, SIDE, 1))
    picture = Image.fromarray(grainy.clip(0, 255).astype(np.uint8))
    return picture.filter(ImageFilter.GaussianBlur(random.uniform(0, 2)))


KINDS: dict[str, Callable[[_Random], Image.Image]] = {
    "text": draw_text,
    "charts": draw_chart,
    "drawings": draw_shapes,
    "textures": draw_texture,
}


def _draw_series(
    draw: ImageDraw.ImageDraw, random: _Random, frame: tuple[int, int, int, int]
) -> None:
    left, top, right, bottom = frame
    count = int(random.integers(4, 60))
    x = np.linspace(left + 4, right - 4, count)
    walk = np.cumsum(random.normal(0, 1, count))
    share = (walk - walk.min()) / max(float(np.ptp(walk)), 1e-9)
    y = top + 4 + (bottom - top - 8) * (1 - share * random.uniform(0.3, 1))
    colour = _colour(random)
    match random.integers(3):
        case 0:
            draw.line(list(zip(x, y, strict=True)), fill=colour, width=int(random.integers(1, 4)))
        case 1:
            half = (x[1] - x[0]) * random.uniform(0.2, 0.5)
            for at, height in zip(x, y, strict=True):
                draw.rectangle((at - half, height, at + half, bottom), colour)
        case _:
            radius = random.uniform(1, 5)
            for at, height in zip(x, random.permutation(y), strict=True):
                draw.ellipse((at - radius, height - radius, at + radius, height + radius), colour)


def _draw_shape(
    draw: ImageDraw.ImageDraw,
    random: _Random,
    centre: np.ndarray,
    radius: float,
    colour: _Colour,
    outline: _Colour | None,
) -> None:
    cx, cy = centre.tolist()
    width = int(random.integers(1, 6))
    match random.integers(4):
        case 0:
            tall = radius * random.uniform(0.4, 1)
            draw.ellipse((cx - radius, cy - tall, cx + radius, cy + tall), colour, outline, width)
        case 1:
            tall = radius * random.uniform(0.4, 1)
            box = (cx - radius, cy - tall, cx + radius, cy + tall)
            draw.rounded_rectangle(box, random.uniform(0, tall / 2), colour, outline, width)
        case 2:
            angles = np.sort(random.uniform(0, 2 * np.pi, random.integers(3, 9)))
            far = radius * random.uniform(0.4, 1, len(angles))
            points = np.stack([cx + far * np.cos(angles), cy + far * np.sin(angles)], 1)
            draw.polygon([tuple(point) for point in points.tolist()], colour, outline, width)
        case _:
            end = centre + random.normal(0, radius, 2)
            draw.line((cx, cy, *end.tolist()), fill=colour, width=2 * width)


def _write(
    draw: ImageDraw.ImageDraw,
    random: _Random,
    at: tuple[float, float],
    width: float,
    size: int,
    ink: _Colour,
) -> None:
    """Made-up words, up to a width."""
    words = ""
    while len(words) * size * 0.5 < width:
        word = "".join(random.choice(list(_LETTERS), random.integers(1, 10)))
        words += (word.title() if random.random() < 0.15 else word) + " "
    words = words[: max(int(width / (size * 0.5)), 1)]
    draw.text(at, words, fill=ink, font=_font(size))


_font = functools.cache(ImageFont.load_default)


def _paper_and_ink(random: _Random) -> tuple[_Colour, _Colour]:
    light = tuple(int(v) for v in 255 - random.exponential(12, 3).clip(0, 80))
    dark = tuple(int(v) for v in random.exponential(25, 3).clip(0, 110))
    return (light, dark) if random.random() < 0.85 else (dark, light)  # type: ignore[return-value]


def _colour(random: _Random) -> _Colour:
    r, g, b = (int(v) for v in random.integers(0, 256, 3))
    return r, g, b


def _mix(a: _Colour, b: _Colour, share: float) -> _Colour:
    r, g, b_ = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return r, g, b_
