"""What a notebook shows."""

import base64
import dataclasses
import io
from html.parser import HTMLParser

import numpy as np
from PIL import Image

from sightline.explanation import Explanation


class Parser(HTMLParser):
    """Elements, their attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def image(source: str | None) -> np.ndarray:
    assert source is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))))


def test_a_caption_shows_its_picture_and_its_words(make_report) -> None:
    caption = make_report().caption
    shown = Parser(caption._repr_html_())
    (picture,) = shown.of("img")
    assert picture["alt"] == "a cat sleeps"
    assert image(picture["src"]).shape == (40, 60, 3)
    assert shown.texts[:5] == ["a cat sleeps", "word", "probability", "alternatives", "support"]
    assert shown.texts[5:9] == ["a", "40 %", "bird 20 %, (end) 0.1 %", "–"]
    assert "✓ seen (0.90)" in shown.texts
    assert "✗ not supported (0.10)" in shown.texts
    without = Parser(dataclasses.replace(caption, picture=None)._repr_html_())
    assert not without.of("img")


def test_an_explanation_shows_colours_over_the_picture_and_underlines(make_report) -> None:
    report = make_report()
    why: Explanation = report.explanations[2]
    why = dataclasses.replace(why, picture=report.picture)
    shown = Parser(why._repr_html_())
    (picture,) = shown.of("img")
    pixels = image(picture["src"]).astype(int)
    assert pixels[20, 5, 0] > pixels[20, 5, 2] + 100
    assert pixels[20, 55, 2] > pixels[20, 55, 0] + 50
    styles = [attributes["style"] for attributes in shown.of("span")]
    assert ["solid" in str(style) for style in styles] == [True, False, True]
    assert ["dashed" in str(style) for style in styles] == [False, True, False]
    assert "5.0px" in str(styles[1])  # the strongest
    assert {"(start)", "a", "cat", "sleeps"} <= set(shown.texts)
    # Without the photograph, the relevance alone.
    alone = Parser(dataclasses.replace(why, picture=None)._repr_html_())
    assert image(alone.of("img")[0]["src"]).shape == (40, 60, 3)


def test_text_is_never_markup(make_report) -> None:
    report = make_report(said=("<script>", '"><img>', "&amp;"))
    for shown in (report.caption, report.explanations[2]):
        parsed = Parser(shown._repr_html_())
        assert not parsed.of("script")
        assert len(parsed.of("img")) == 1
        assert "<script>" in parsed.texts
