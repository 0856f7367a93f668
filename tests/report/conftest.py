"""An report of a caption made by hand: every number in it is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from sightline.captions import Caption, Counterfactual, Word
from sightline.explanation import Explanation
from sightline.report.report import Report
from sightline.support.classifier import Support

BOXES = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0))  # the left and the right half
SUPPORT = (None, Support(0.9, "seen", {"occlusion": 0.8}), Support(0.1, "not supported", {}))

MakeReport = Callable[..., Report]


def word(text: str, probability: float, support: Support | None = None) -> Word:
    others = (("bird", math.log(0.2)), ("<end>", math.log(0.001)))
    return Word(text, math.log(probability), others, (0.75, 0.25), support=support)


def explanation(method: str, said: list[str], place: int, text: str) -> Explanation:
    """For the word at the left, half as much against it at the right."""
    relevance = np.zeros((40, 60), np.float32)
    relevance[:, :30], relevance[:, 30:] = (place + 1) / 1200, -(place + 1) / 2400
    words = np.resize(np.float32([0.5, -1.0, 0.25]), place + 1)
    if method == "attention":
        words, relevance = 0 * words, np.abs(relevance)
    halves = np.float32([relevance[:, :30].sum(), relevance[:, 30:].sum()])
    previous = ("<start>", *said[:place])
    total = float(halves.sum() + words.sum()) + 0.25
    return Explanation(
        method, text, place, total, halves, BOXES, previous, words, relevance, bias=0.25
    )


@pytest.fixture
def make_report() -> MakeReport:
    def make(
        said: tuple[str, ...] = ("a", "cat", "sleeps"),
        other: str = "dog",
        name: str = "photo.jpg",
        methods: tuple[str, ...] = ("lrp", "attention"),
        checked: bool = True,
    ) -> Report:
        picture = Image.new("RGB", (60, 40), (90, 120, 60))
        words = tuple(
            word(text, 0.4, SUPPORT[place] if checked else None) for place, text in enumerate(said)
        )
        caption = Caption(" ".join(said), words, -3.0, -1.0, BOXES, picture)
        everywhere = tuple(math.log(p) for p in (0.01, 0.3, 0.02, 0.03))
        asked = [*enumerate(said), (1, other)]
        explanations = tuple(
            explanation(method, list(said), place, text)
            for method in methods
            for place, text in asked
        )
        unsaid = (Counterfactual(word(other, 0.3), 1, everywhere),)
        return Report(name, picture, caption, explanations, unsaid)

    return make
