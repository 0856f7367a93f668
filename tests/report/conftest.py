"""A report of a caption made by hand: every number in it is known; and a visit to its page."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sightline.captions import Caption, Counterfactual, UnknownWord, Word
from sightline.explanation import Explanation
from sightline.report.report import Report
from sightline.support.classifier import Support

BOXES = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0))  # the left and the right half
SUPPORT = (None, Support(0.9, "seen", {"occlusion": 0.8}), Support(0.1, "not supported", {}))

CHANCES = {"a": (0, 0.9), "bird": (1, 0.2), "dog": (1, 0.3), "horn": (3, 0.01), "zoo": (2, 1e-6)}

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
        unknown: tuple[UnknownWord, ...] = (),
        unfamiliar: bool | None = None,
        **fields: Any,
    ) -> Report:
        picture = Image.new("RGB", (60, 40), (90, 120, 60))
        words = tuple(
            word(text, 0.4, SUPPORT[place] if checked else None) for place, text in enumerate(said)
        )
        caption = Caption(" ".join(said), words, -3.0, -1.0, BOXES, picture, unfamiliar)
        everywhere = tuple(math.log(p) for p in (0.01, 0.3, 0.02, 0.03))
        strange = {each.text for each in unknown}
        asked = [(n, text) for n, text in enumerate(said) if text not in strange] + [(1, other)]
        explanations = tuple(
            explanation(method, list(said), place, text)
            for method in methods
            for place, text in asked
        )
        unsaid = (Counterfactual(word(other, 0.3), 1, everywhere),)
        likeliest = {text: (place, math.log(p)) for text, (place, p) in CHANCES.items()}
        return Report(
            *(name, picture, caption, explanations, unsaid),
            likeliest=likeliest,
            unknown=unknown,
            **fields,
        )

    return make


@pytest.fixture
def visit(browser, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page of a file, as readers do; any error of its script fails the test."""
    errors: list[str] = []
    contexts = []

    def open_page(html: str, width: int = 1280, height: int = 800, theme: str = "light") -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: _refuse_the_network(request.url, errors))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def _refuse_the_network(address: str, errors: list[str]) -> None:
    if not address.startswith(("file:", "data:")):
        errors.append(f"asked the network for {address}")
