"""The attention of every word over the picture, as in paper 1's figures."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from sightline.captions import Caption
from sightline.display import draw
from sightline.errors import ConfigError
from sightline.report.saving import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIDE = 336  # pixels of the longer side of each small picture


@draw.register
def plot_attention(caption: Caption, path: Path) -> None:
    """Write the figure to a .png, .pdf or .svg."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"{path}: a figure must end in .png, .pdf or .svg")
    save_figure(draw_attention(caption), path)


def draw_attention(caption: Caption) -> "Figure":
    """The picture, then the picture once per word: bright where the word looked, dim elsewhere.

    Each panel has a scale of its own, because a caption's words differ in how sharply they look;
    the number is the share of the attention on the brightest tenth of the picture (0.1 if the word
    looked everywhere alike).
    """
    from matplotlib.figure import Figure

    if caption.picture is None:
        raise ConfigError("a caption without its picture cannot be drawn")
    picture = caption.picture.convert("RGB")
    scale = _SIDE / max(picture.size)
    size = (max(round(picture.width * scale), 1), max(round(picture.height * scale), 1))
    pixels = np.asarray(picture.resize(size)) / 255
    columns = min(len(caption.words) + 1, 6)
    rows = -(-(len(caption.words) + 1) // columns)
    figure = Figure(
        figsize=(2.2 * columns, (2.2 * size[1] / size[0] + 0.35) * rows + 0.4), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    panels[0].imshow(pixels)
    for number, (panel, word) in enumerate(zip(panels[1:], caption.words, strict=False)):
        density = caption.attention_map(number, size[1], size[0])
        panel.imshow(_light(pixels, density))
        panel.set_title(f"{word.text}  {_concentration(density):.2f}", fontsize=10)
    figure.suptitle(caption.text, fontsize=12)
    return figure


def _light(pixels: np.ndarray, density: np.ndarray) -> np.ndarray:
    smooth = Image.fromarray((density / max(density.max(), 1e-12)).astype(np.float32))
    # Regions are coarse: a blur of their size turns steps into a light.
    coarse = smooth.resize((max(smooth.width // 24, 2), max(smooth.height // 24, 2)))
    light = np.asarray(coarse.resize(smooth.size, Image.Resampling.BICUBIC)).clip(0, 1)[..., None]
    return np.clip(pixels * (0.25 + 0.75 * light) + 0.12 * light, 0, 1)


def _concentration(density: np.ndarray) -> float:
    ordered = np.sort(density.ravel())[::-1]
    return float(ordered[: max(len(ordered) // 10, 1)].sum() / max(ordered.sum(), 1e-12))
