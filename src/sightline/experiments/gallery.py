"""Small pictures of words: what is kept of a picture in a record, and how it is drawn."""

import base64
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.captions import Caption
from sightline.experiments.experiment import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDE = 160  # pixels of the longer side of a kept picture
_CELLS = 28  # of a kept heatmap's side
# Paper 4, figure 4: normalised relevance of a previous word, and its colour.
BANDS = (
    (0.3, "#c62828", "0.3 to 1"),
    (0.0, "#b38600", "0 to 0.3"),
    (-np.inf, "#1565c0", "below 0"),
)
NOT_RELATED = "#9e9e9e"
NOTHING_WRONG = "no word is wrong by the references, or none was to be drawn"


def keep_picture(image: Image.Image) -> str:
    """A small JPEG, as text."""
    small = image.convert("RGB")
    small.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    small.save(file, "JPEG", quality=85)
    return base64.b64encode(file.getvalue()).decode("ascii")


def kept_picture(text: str) -> NDArray[np.float64]:
    """Its pixels, from 0 to 1.

    >>> kept_picture(keep_picture(Image.new("RGB", (320, 160), "white"))).shape
    (80, 160, 3)
    """
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text)))) / 255


def keep_heatmap(heatmap: NDArray[Any]) -> list[list[float]]:
    """A heatmap at a coarse resolution, divided by its largest absolute value."""
    image = Image.fromarray(heatmap.astype(np.float32))
    coarse = np.asarray(image.resize((_CELLS, _CELLS), Image.Resampling.BOX), dtype=np.float64)
    largest = np.abs(coarse).max()
    return (coarse / largest if largest > 0 else coarse).round(3).tolist()  # type: ignore[no-any-return]


def show_heatmap(panel: "Axes", picture: str, heatmap: Sequence[Sequence[float]]) -> None:
    """A kept heatmap over its picture in grey: red speaks for the word, blue against it."""
    pixels = kept_picture(picture)
    height, width = pixels.shape[:2]
    grey = 0.5 + 0.5 * pixels.mean(-1)
    values = np.asarray(
        Image.fromarray(np.array(heatmap, np.float32)).resize(
            (width, height), Image.Resampling.BICUBIC
        )
    )
    panel.imshow(grey, cmap="gray", vmin=0, vmax=1)
    panel.imshow(
        values, cmap="RdBu_r", vmin=-1, vmax=1, alpha=np.clip(np.abs(values) * 0.9, 0, 0.9)
    )


def band(relevance: float | None) -> str:
    """The colour of a previous word; None: of a word that comes later.

    >>> band(0.3), band(0.1), band(-0.5), band(None)
    ('#c62828', '#b38600', '#1565c0', '#9e9e9e')
    """
    if relevance is None:
        return NOT_RELATED
    return next(
        colour for bound, colour, _ in BANDS if relevance >= bound and (relevance > 0 or bound < 0)
    )


def write_words(panel: "Axes", lines: Sequence[Sequence[tuple[str, str]]], width: int = 26) -> None:
    """Lines of words in their colours, wrapped."""
    y = 0
    for words in lines:
        x = 0
        for text, colour in words:
            if x and x + len(text) > width:
                x, y = 0, y + 1
            panel.text(x, -y, text, color=colour, fontsize=9, family="monospace", va="top")
            x += len(text) + 1
        y += 1
    panel.set(xlim=(0, width), ylim=(-max(y, 4), 0.3))


def no_pictures(sentence: str) -> "Figure":
    """A figure that says why it is empty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 1.2))
    figure.text(0.5, 0.5, sentence, ha="center", va="center")
    return figure


def attention_map(caption: Caption, place: int) -> list[list[float]]:
    """What is kept of where a word looked."""
    return keep_heatmap(caption.attention_map(place, 112, 112))


def draw_words(
    cells: Sequence[Record],
    heatmap: Callable[[Record], Sequence[Sequence[float]]],
    title: Callable[[Record], str],
) -> "Figure":
    """Wrong words in rows of four: each word's heatmap over its picture, below a title."""
    from matplotlib.figure import Figure

    if not cells:
        return no_pictures(NOTHING_WRONG)
    columns = min(len(cells), 4)
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    for panel, cell in zip(panels, cells, strict=False):
        show_heatmap(panel, cell["image"], heatmap(cell))
        panel.set_title(title(cell), fontsize=7.5)
    return figure


def choose(cells: Sequence[Record], count: int) -> list[Record]:
    """As many cells, the surest words first, at most one of a picture and two of a word."""
    chosen: list[Record] = []
    for cell in sorted(cells, key=lambda cell: -float(cell["log_probability"])):
        same = [other["word"] for other in chosen].count(cell["word"])
        if same < 2 and all(other["picture"] != cell["picture"] for other in chosen):
            chosen.append(cell)
    return chosen[:count]
