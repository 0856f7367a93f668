"""Relevance over a picture at the size it is shown, from -1 (against a word) to 1 (for it)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.captions import spread
from sightline.explanation import Explanation

_FULL = 0.99  # this share of the picture has less relevance than full colour shows
_PLACES = (
    ("at the top left", "at the top", "at the top right"),
    ("at the left", "in the middle", "at the right"),
    ("at the bottom left", "at the bottom", "at the bottom right"),
)


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Values of -1 to 1, and the `scale` they were divided by.

    Relevance is a density here, whose mean is the relevance of the whole picture: so scales of
    different words and sizes can be compared.
    """

    values: NDArray[np.float32]  # (h, w)
    scale: float

    def strongest(self, sign: int) -> str | None:
        """In which ninth of the picture there is most for a word (1), or against it (-1), in words.

        >>> Heatmap(np.float32([[0, 0, 0], [0, 0, 0.2], [-1, 0, 0]]), 1.0).strongest(-1)
        'at the bottom left'
        """
        one_sided = np.clip(sign * self.values, 0, None)
        if not one_sided.any():
            return None
        ninths = [np.array_split(band, 3, 1) for band in np.array_split(one_sided, 3)]
        means = [ninth.mean() if ninth.size else 0.0 for band in ninths for ninth in band]
        row, column = divmod(int(np.argmax(means)), 3)
        return _PLACES[row][column]

    def shared(self, other: "Heatmap") -> float:
        """How much of what is for a word is where another word has it, too: from 0 to 1.

        >>> one, other = (Heatmap(np.float32([row]), 1.0) for row in ([1, 1, -1], [0, 1, 1]))
        >>> one.shared(other)
        0.5
        """
        parts = [np.clip(each.values, 0, None, dtype=np.float64) for each in (self, other)]
        if not all(part.any() for part in parts):
            return 0.0
        return float(np.minimum(*(part / part.sum() for part in parts)).sum())

    def levels(self) -> Image.Image:
        """As grey levels: 128 is nothing, 255 is 1 and 1 is -1.

        >>> np.asarray(Heatmap(np.float32([[-1, 0, 1]]), 1.0).levels()).tolist()
        [[1, 128, 255]]
        """
        return Image.fromarray(np.round(128 + 127 * self.values).astype(np.uint8))


def fit(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture whose longer side is made at most `side`, never larger.

    >>> fit(400, 200, 100), fit(40, 20, 100)
    ((100, 50), (40, 20))
    """
    factor = min(side / max(width, height), 1)
    return max(round(width * factor), 1), max(round(height * factor), 1)


def heatmap(explanation: Explanation, side: int) -> Heatmap:
    """The relevance of an explanation over the picture, its longer side at most `side` pixels.

    Full colour is what all but a hundredth of the picture stays below: a few pixels that stand
    out would leave the rest pale.

    >>> boxes, words = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)), np.float32([0])
    >>> regions = np.float32([2, -1])
    >>> heatmap(Explanation("lrp", "cat", 0, 1.0, regions, boxes, ("<start>",), words), 2).values
    array([[ 1. , -0.5],
           [ 1. , -0.5]], dtype=float32)
    """
    relevance = explanation.heatmap
    if relevance is None:
        density = spread(explanation.regions.tolist(), explanation.boxes, side, side)
    else:
        size = fit(relevance.shape[1], relevance.shape[0], side)
        means = Image.fromarray(relevance * relevance.size).resize(size, Image.Resampling.BOX)
        density = np.asarray(means)
    strength = np.abs(density)
    scale = float(np.quantile(strength, _FULL) or strength.max() or 1.0)
    return Heatmap(np.clip(density / scale, -1, 1).astype(np.float32), scale)
