"""How notebooks show captions and explanations: HTML without scripts, which all of them allow."""

from html import escape

import numpy as np
from PIL import Image

from sightline.captions import Caption, Word
from sightline.display import to_html
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report import colours
from sightline.report.embedding import jpeg_uri
from sightline.report.heatmaps import fit, heatmap
from sightline.report.wording import COLOURS, MARKS, likelihood, readable, summary

_SIDE = 360  # pixels of the longer side of a picture
_CELL = "text-align:left;padding:2px 12px 2px 0"


@to_html.register
def show_caption(caption: Caption) -> str:
    """The picture, the caption, and a table of its words.

    >>> word = Word("cat", -0.5, (("dog", -1.2),), (1.0,))
    >>> "dog 30 %" in show_caption(Caption("cat", (word,), -0.5, -0.5, ((0.0, 0.0, 1.0, 1.0),)))
    True
    """
    picture = "" if caption.picture is None else _embed(caption.picture, caption.text)
    rows = "".join(_row(word) for word in caption.words)
    headings = ("word", "probability", "alternatives", "support")
    head = "".join(f'<th scope="col" style="{_CELL}">{heading}</th>' for heading in headings)
    return (
        f"<figure style='margin:0'>{picture}<figcaption><b>{escape(caption.text)}</b></figcaption>"
        f"</figure><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


@to_html.register
def show_explanation(explanation: Explanation) -> str:
    """The picture with its heatmap, the previous words underlined by relevance, and a summary.

    >>> box, words = ((0.0, 0.0, 1.0, 1.0),), np.float32([0.5])
    >>> why = Explanation("lrp", "cat", 0, 1.5, np.float32([1]), box, ("<start>",), words)
    >>> "LRP of “cat”" in show_explanation(why)
    True
    """
    relevance = heatmap(explanation, _SIDE)
    ground = explanation.picture or Image.new("L", relevance.values.shape[::-1], 128)
    said = summary(explanation, relevance)
    strengths = explanation.words / (np.abs(explanation.words).max() or 1)
    before = " ".join(
        _underlined(text, float(strength))
        for text, strength in zip(explanation.previous, strengths, strict=True)
    )
    return (
        f"<figure style='margin:0'>{_embed(colours.overlay(ground, relevance.values), said)}"
        f"<figcaption><p style='font-size:120%'>{before} <b>{escape(explanation.word)}</b></p>"
        f"<p>{escape(said)}</p><p>{COLOURS} {find_method(explanation.method).sentence}</p>"
        "</figcaption></figure>"
    )


def _row(word: Word) -> str:
    others = ", ".join(
        f"{readable(text)} {likelihood(log_probability)}"
        for text, log_probability in word.alternatives
    )
    support = "–"
    if word.support is not None:
        support = f"{MARKS[word.support.verdict]} {word.support.verdict} ({word.support.score:.2f})"
    cells = (word.text, likelihood(word.log_probability), others, support)
    return "<tr>" + "".join(f'<td style="{_CELL}">{escape(c)}</td>' for c in cells) + "</tr>"


def _underlined(text: str, strength: float) -> str:
    style = "solid" if strength > 0 else "dashed"
    colour = colours.css(colours.FOR if strength > 0 else colours.AGAINST)
    line = f"text-decoration:underline {style} {colour} {1 + 4 * abs(strength):.1f}px"
    return f'<span style="{line if strength else ""}">{escape(readable(text))}</span>'


def _embed(picture: Image.Image, description: str) -> str:
    small = picture.convert("RGB").resize(fit(*picture.size, _SIDE))
    return f'<img src="{jpeg_uri(small)}" alt="{escape(description)}">'
