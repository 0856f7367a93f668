"""One self-contained page: a caption, and what each of its words is based on.

The page makes no network requests and works from a file. Its content is text in a JSON element;
heatmaps are grey PNGs of signed relevance, coloured by the page.
"""

import json
import math
import re
from html import escape
from importlib.resources import files
from typing import Any

from sightline.captions import Counterfactual, Word
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report import colours
from sightline.report.embedding import jpeg_uri, png_uri
from sightline.report.heatmaps import heatmap
from sightline.report.report import Report
from sightline.report.wording import COLOURS, MARKS, likelihood, percent, readable, summary
from sightline.text.stop_words import is_content

_SIDE = 192  # pixels of the longer side of a heatmap: as fine as what encoders see
_STYLES = {"seen": "seen", "doubtful": "doubtful", "not supported": "unsupported"}


def render_page(report: Report) -> str:
    """The page of a report, as HTML.

    >>> report = captioner.report("photo.jpg")  # doctest: +SKIP
    >>> Path("why.html").write_text(render_page(report), "utf-8")  # doctest: +SKIP
    """
    parts = {
        "title": escape(f"{report.caption} · {report.name}"),
        "name": escape(report.name),
        "caption": escape(report.caption.text),
        "words": "\n".join(_button(word) for word in report.caption.words),
        "unsaid": _counterfactual_line(report),
        "verdicts": _legend_of_verdicts(report),
        "methods": "\n".join(_choice(name, report.methods[0]) for name in report.methods),
        "skipped": _skipped_line(report),
        "picture": jpeg_uri(report.picture),
        "width": str(report.picture.width),
        "height": str(report.picture.height),
        "colours": COLOURS,
        "opacity": str(round(100 * colours.OPACITY)),
        "style": _variables() + _resource("page.css"),
        "script": _resource("page.js"),
        # "</script>" or "<!--" in a caption must not end or change the element it stands in.
        "data": json.dumps(_content(report)).replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: parts[name[1]], _resource("page.html"))


def _resource(name: str) -> str:
    return (files("sightline.report") / name).read_text(encoding="utf-8")


def _variables() -> str:
    shades = (("for", colours.FOR), ("against", colours.AGAINST))
    return "".join(f":root {{ --heat-{name}: {colours.css(shade)}; }}\n" for name, shade in shades)


def _button(word: Word, kind: str = "word") -> str:
    mark = verdict = ""
    if word.support is not None:
        kind += f" {_STYLES[word.support.verdict]}"
        mark = f'<span class="mark" aria-hidden="true">{MARKS[word.support.verdict]}</span>'
        verdict = f'<span class="hidden">, {word.support.verdict}</span>'
    text = escape(readable(word.text))
    return (
        f'<button type="button" class="{kind}" aria-pressed="false">{mark}{text}{verdict}</button>'
    )


def _counterfactual_line(report: Report) -> str:
    if not report.counterfactuals:
        return ""
    chips = "\n".join(
        _button(counterfactual.word, "word other") for counterfactual in report.counterfactuals
    )
    return f'<p class="unsaid"><span class="quiet">why not</span>\n{chips}</p>'


def _legend_of_verdicts(report: Report) -> str:
    if all(word.support is None for word in report.caption.words):
        return ""
    marks = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    return f" Does the picture support a word? {marks}. Words without a mark were not checked."


def _choice(method: str, chosen: str) -> str:
    checked = " checked" if method == chosen else ""
    box = f'<input type="radio" name="method" value="{method}"{checked}>'
    return f"<label>{box} {find_method(method).label}</label>"


def _skipped_line(report: Report) -> str:
    reasons = (
        f"{find_method(name).label} was skipped ({escape(why)})."
        for name, why in report.skipped.items()
    )
    return f'<p class="quiet">{" ".join(reasons)}</p>' if report.skipped else ""


def _content(report: Report) -> dict[str, Any]:
    """What the page's script reads: words said, then unsaid, and their explanations by number."""
    words = report.caption.words
    said = [(place, word.text) for place, word in enumerate(words)]
    asked = said + [
        (counterfactual.place, counterfactual.word.text)
        for counterfactual in report.counterfactuals
    ]
    explanations = [
        _explanation(why, asked.index((why.place, why.word))) for why in report.explanations
    ]
    return {
        "colours": {"for": colours.FOR, "against": colours.AGAINST},
        "methods": [
            {"name": name, "sentence": find_method(name).sentence} for name in report.methods
        ],
        "words": [_said(place, word) for place, word in enumerate(words)]
        + [_counterfactual(counterfactual, words) for counterfactual in report.counterfactuals],
        "explanations": explanations,
        "first": _first(report, explanations),
    }


def _first(report: Report, explanations: list[dict[str, Any]]) -> int:
    """The word shown first: a `why_not` word, or the content word with the largest image share."""
    if report.counterfactuals:
        return len(report.caption.words)
    shown = [why for why in report.explanations if why.method == report.methods[0]]
    most = max(
        range(len(shown)),
        key=lambda number: (is_content(shown[number].word), shown[number].image_share),
    )
    return int(explanations[most]["word"])


def _said(place: int, word: Word) -> dict[str, Any]:
    return {
        "heading": f"“{readable(word.text)}”",
        "place": place,
        "said": True,
        "likelihood": f"Probability: {likelihood(word.log_probability)}.",
        "alternatives": _alternatives(word),
        "support": _support(word),
    }


def _counterfactual(counterfactual: Counterfactual, words: tuple[Word, ...]) -> dict[str, Any]:
    if counterfactual.place < len(words):
        instead = words[counterfactual.place]
        where = f"instead of “{instead.text}” ({likelihood(instead.log_probability)})"
    else:
        where = "after the last word"
    text = f"Probability as word {counterfactual.place + 1}, {where}: "
    text += f"{likelihood(counterfactual.word.log_probability)}."
    if counterfactual.word.log_probability == max(counterfactual.everywhere):
        text += " It is most likely at this position."
    return {
        "heading": f"Why not “{counterfactual.word.text}”?",
        "place": counterfactual.place,
        "said": False,
        "likelihood": text,
        "alternatives": _alternatives(counterfactual.word),
        "support": _support(counterfactual.word),
    }


def _alternatives(word: Word) -> list[dict[str, Any]]:
    return [
        _bar(readable(text), math.exp(log_probability), likelihood(log_probability))
        for text, log_probability in word.alternatives
    ]


def _support(word: Word) -> dict[str, str] | None:
    if word.support is None:
        return None
    support = word.support
    evidence = ", ".join(f"{name} {value:.2f}" for name, value in support.evidence.items())
    verdict = support.verdict
    return {
        "style": _STYLES[verdict],
        "text": f"{MARKS[verdict]} {verdict.capitalize()}: support {support.score:.2f}",
        "evidence": f"Based on {evidence}." if evidence else "",
    }


def _explanation(why: Explanation, word: int) -> dict[str, Any]:
    relevance = heatmap(why, _SIDE)
    content: dict[str, Any] = {
        "word": word,
        "method": why.method,
        "map": png_uri(relevance.levels()),
        "scale": relevance.scale,
        "summary": summary(why, relevance),
        "underlines": [0.0] * len(why.words),
    }
    if why.words.any():
        strengths = why.words / abs(why.words).max()
        content["underlines"] = [round(float(strength), 3) for strength in strengths]
        content["shares"] = [
            _bar("the picture", why.image_share, percent(why.image_share)),
            _bar("the previous words", 1 - why.image_share, percent(1 - why.image_share)),
        ]
        content["before"] = [
            _bar(readable(text), strength, f"{value:+.3g}", signed=True)
            for text, strength, value in zip(
                why.previous, content["underlines"], why.words.tolist(), strict=True
            )
        ]
    if why.method == "lrp":  # the method whose parts add up
        parts = {
            "the picture": why.image_relevance,
            "the previous words": why.language_relevance,
            "constants": why.bias,
            "absorbed by ε": why.epsilon,
            "total": why.total,
        }
        largest = max(map(abs, parts.values())) or 1.0
        content["parts"] = [
            _bar(name, value / largest, f"{value:+.2f}", signed=True)
            for name, value in parts.items()
        ]
    return content


def _bar(name: str, length: float, number: str, *, signed: bool = False) -> dict[str, Any]:
    """A row of a chart, as the script draws it."""
    sign = ("for" if length > 0 else "against") if signed else None
    return {"name": name, "length": round(length, 3), "number": number, "sign": sign}
