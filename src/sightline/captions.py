"""A caption: its text, and the details of every word."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.data.dataset import Box
from sightline.display import draw, to_html

UNFAMILIAR = "The captioner does not know pictures like this one well, so its caption may be wrong."
SEEN, DOUBTFUL, NOT_SUPPORTED = VERDICTS = ("seen", "doubtful", "not supported")


def known(number: float) -> float | None:
    """A number as JSON has it; None for one that is not known.

    >>> known(-0.5), known(float("nan"))
    (-0.5, None)
    """
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class Support:
    """How far the picture supports a word."""

    score: float  # the probability that the word is right, calibrated on held-out captions
    verdict: str  # one of VERDICTS
    evidence: dict[str, float]  # the scores it is based on, described in support.word_scores

    def to_json(self) -> dict[str, Any]:
        return {"score": self.score, "verdict": self.verdict, "evidence": self.evidence}


@dataclass(frozen=True)
class Word:
    """One word of a caption."""

    text: str
    log_probability: float  # not a number, where a captioner behind an API gives none
    alternatives: tuple[tuple[str, float], ...]  # other candidates, with log-probabilities
    attention: tuple[float, ...]  # a weight per region, in the order of `Caption.boxes`
    signals: dict[str, float] = field(default_factory=dict)  # such as the gate β
    support: Support | None = None  # by the picture; None: not checked, or not a content word
    # Of a word that the captioner does not know, what it read instead; the support is of that.
    read_as: str | None = None
    # What it is made of in the captioner's vocabulary: one id, or those of its pieces.
    ids: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "log_probability": known(self.log_probability),
            "alternatives": [{"text": t, "log_probability": p} for t, p in self.alternatives],
            "attention": list(self.attention),
            "signals": self.signals,
            "support": None if self.support is None else self.support.to_json(),
            "read_as": self.read_as,
        }


@dataclass(frozen=True)
class Counterfactual:
    """A word that a caption does not say, at a position where it could have been said."""

    word: Word
    place: int  # from 0; one past the last word is where the caption ends
    everywhere: tuple[float, ...]  # the word's log-probability at each position

    def to_json(self) -> dict[str, Any]:
        return {"place": self.place, **self.word.to_json(), "everywhere": list(self.everywhere)}


@dataclass(frozen=True)
class UnknownWord:
    """A word that the captioner does not know, and the nearest one that it knows."""

    text: str
    nearest: str | None  # None: none is near
    nearest_by: str | None  # "form", "meaning" or "spelling"

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "nearest": self.nearest, "nearest_by": self.nearest_by}


@dataclass(frozen=True)
class Caption:
    """A caption of a picture.

    `score` ranks the captions of one picture. `log_probability` is that of the whole caption,
    including its end. `boxes` are the regions that attention refers to, as fractions of the
    picture.
    """

    text: str
    words: tuple[Word, ...]
    log_probability: float
    score: float
    boxes: tuple[Box, ...]
    picture: Image | None = field(default=None, repr=False, compare=False)
    # Whether the picture is unlike those that the captioner knows; None: it cannot tell.
    unfamiliar: bool | None = None
    given: bool = False  # somebody else wrote it, and the captioner read it

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return to_html(self)

    @property
    def is_checked(self) -> bool:
        """Whether its words come with their support, those that can have one."""
        return any(word.support is not None for word in self.words)

    @property
    def unsupported(self) -> tuple[Word, ...]:
        """The words that the picture does not support, of a caption that was checked.

        A word that the captioner does not know is none of them, whatever it was read as.
        """
        return tuple(
            word
            for word in self.words
            if word.support and word.support.verdict == NOT_SUPPORTED and word.read_as is None
        )

    @property
    def doubt(self) -> float:
        """How much there is to look at before the caption is used; it orders captions.

        An unfamiliar picture counts most, then unsupported words, then doubtful ones; then the
        least support of a word.
        """
        supports = [word.support for word in self.words if word.support is not None]
        doubtful = sum(support.verdict == DOUBTFUL for support in supports)
        least = min((support.score for support in supports), default=1.0)
        return 100 * bool(self.unfamiliar) + 10 * len(self.unsupported) + doubtful + 1 - least

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the picture itself is not in it."""
        return {
            "text": self.text,
            "log_probability": known(self.log_probability),
            "score": known(self.score),
            "words": [word.to_json() for word in self.words],
            "boxes": [list(box) for box in self.boxes],
            "unfamiliar": self.unfamiliar,
        }

    def attention_map(self, word: int, height: int, width: int) -> NDArray[np.float64]:
        """The attention of a word over a grid of `height` x `width` points of the picture.

        A region's weight is spread evenly over its box; overlapping boxes add up.
        """
        return spread(self.words[word].attention, self.boxes, height, width)

    def plot(self, path: Path | str) -> None:
        """Draw the picture once per word, lit where the word looked, as in the papers' figures."""
        draw(self, Path(path))


def spread(
    weights: Sequence[float], boxes: Sequence[Box], height: int, width: int
) -> NDArray[np.float64]:
    """Weights of boxes as densities over a grid of points: their mean is the weights' sum.

    >>> spread([1.0], [(0.0, 0.0, 0.5, 1.0)], 1, 2).tolist()
    [[2.0, 0.0]]
    """
    density = np.zeros((height, width))
    y = (np.arange(height) + 0.5) / height
    x = (np.arange(width) + 0.5) / width
    for weight, (x0, y0, x1, y1) in zip(weights, boxes, strict=True):
        rows = slice(*np.searchsorted(y, (y0, y1)))
        columns = slice(*np.searchsorted(x, (x0, x1)))
        area = max((x1 - x0) * (y1 - y0), 1e-12)
        density[rows, columns] += weight / area
    return density
