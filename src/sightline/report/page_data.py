"""What a page shows of a report, as plain JSON: the same for a file and for a server.

Pictures and heatmaps are data URIs. A heatmap is a grey PNG of signed relevance, which the page
colours. Every sentence is made here; the page only lays them out.
"""

import dataclasses
import math
import shlex
from collections.abc import Sequence
from typing import Any

from PIL import Image

from sightline.captions import NOT_SUPPORTED, SEEN, Counterfactual, Word
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report import colours, sentences
from sightline.report.benchmark import describe_method, describe_source
from sightline.report.embedding import jpeg_uri, png_uri
from sightline.report.heatmaps import Heatmap, fit, heatmap
from sightline.report.numbers import numbers_of_explanation, numbers_of_word
from sightline.report.report import Report
from sightline.report.wording import COLOURS, likelihood, readable, summary
from sightline.text.stop_words import is_content
from sightline.text.word_kinds import kind

_SIDES = (192, 144, 96, 64)  # pixels of the longer side of a heatmap; encoders see no more
_MAPS = 600_000  # bytes for all of them, and
_PICTURE = 250_000  # for the picture: so that a page stays below a megabyte
_PICTURES = ((1024, 85), (1024, 70), (768, 70), (512, 60))  # its longer side, and its quality
_THUMBNAIL = 320  # pixels of the longer side
_RARE = math.log(1e-4)  # words less likely than this are all the same to a reader

Things = dict[int, tuple[str, Heatmap]]
"""Words of a caption that name what is in the picture, by their place, with their heatmaps."""


def page_data(report: Report) -> dict[str, Any]:
    """The page of a report.

    >>> data = page_data(captioner.report("photo.jpg"))  # doctest: +SKIP
    >>> data["caption"]["verdict"]  # doctest: +SKIP
    'All 4 checked words are seen in the picture.'
    """
    return {
        "name": report.name,
        "picture": {
            "source": _embedded_picture(report.picture),
            "width": report.picture.width,
            "height": report.picture.height,
        },
        **verdict_data(report),
        "unfamiliar": report.unfamiliar,
        "unknown": _unknown(report),
        "vocabulary": _vocabulary(report),
        "methods": [method_data(name) for name in (*report.methods, *report.pending)],
        "benchmark": describe_source(),
        "skipped": _skipped(report),
        "explanations": _explanations(report, _asked(report)),
        "featured": _featured(report),
        "colours": {"for": colours.FOR, "against": colours.AGAINST, "opacity": colours.OPACITY},
        "legend": COLOURS,
        "command": f"sightline explain {shlex.quote(report.name)}",
    }


def verdict_data(report: Report) -> dict[str, Any]:
    """The part of a page that a check changes: the caption, its words, and their verdicts."""
    words = report.caption.words
    return {
        "caption": {
            "text": report.caption.text,
            "readers_own": report.readers_own,
            "verdict": sentences.verdict_of_caption(report),
            "tone": tone_of(words),
        },
        "words": [_said(report, place, word) for place, word in enumerate(words)]
        + [_unsaid(report, counterfactual) for counterfactual in report.counterfactuals],
    }


def grown_data(report: Report, method: str) -> dict[str, Any]:
    """What a method has added to the page of a report that is growing."""
    added = tuple(why for why in report.explanations if why.method == method)
    return {
        "method": method_data(method),
        "explanations": _explanations(
            dataclasses.replace(report, explanations=added), _asked(report)
        ),
        "skipped": _skipped(report),
        "featured": _featured(report),
    }


def _asked(report: Report) -> list[tuple[int, str]]:
    """The places and words of all that the page has words of, in its order."""
    said = [(place, word.text) for place, word in enumerate(report.caption.words)]
    return said + [(each.place, each.word.text) for each in report.counterfactuals]


def _skipped(report: Report) -> list[str]:
    return [f"{find_method(name).label} was skipped: {why}" for name, why in report.skipped.items()]


def index_data(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The index over several pages: the entries, the one with most doubt first."""
    return {"pictures": sorted(reports, key=lambda entry: -entry["doubt"])}


def index_entry(report: Report, address: str) -> dict[str, Any]:
    """One picture of an index; `address` is where its page is."""
    size = fit(*report.picture.size, _THUMBNAIL)
    return {
        "name": report.name,
        "address": address,
        "thumbnail": jpeg_uri(report.picture.resize(size, Image.Resampling.LANCZOS), 80),
        "width": size[0],
        "height": size[1],
        "words": [
            {
                "text": readable(word.text),
                "verdict": word.support and word.support.verdict,
                "known": all(word.text != unknown.text for unknown in report.unknown),
            }
            for word in report.caption.words
        ],
        "verdict": sentences.verdict_of_caption(report),
        "tone": tone_of(report.caption.words),
        "readers_own": report.readers_own,
        "unfamiliar": report.unfamiliar,
        "doubt": report.caption.doubt,
    }


def _embedded_picture(picture: Image.Image) -> str:
    """A JPEG as good as fits."""
    for side, quality in _PICTURES:
        smaller = picture.resize(fit(*picture.size, side), Image.Resampling.LANCZOS)
        uri = jpeg_uri(smaller, quality)
        if len(uri) <= _PICTURE:
            break
    return uri


def tone_of(words: Sequence[Word]) -> str:
    """The worst verdict of a caption: "seen", "doubtful", "unsupported" or "unchecked"."""
    verdicts = {word.support.verdict for word in words if word.support is not None}
    if not verdicts:
        return "unchecked"
    if NOT_SUPPORTED in verdicts:
        return "unsupported"
    return "seen" if verdicts == {"seen"} else "doubtful"


def _said(report: Report, place: int, word: Word) -> dict[str, Any]:
    unknown = next((each for each in report.unknown if each.text == word.text), None)
    shared = {"text": readable(word.text), "place": place, "kind": "said"}
    if unknown is not None:
        said = sentences.unknown_word(unknown, len(report.likeliest))
        return {
            **shared,
            "kind": "unknown",
            "verdict": None,
            "otherwise": f"{said} {sentences.read_as(word)}",
            "support": None,
            "alternatives": _alternatives(word),
            "numbers": [],
        }
    return {
        **shared,
        "verdict": word.support and word.support.verdict,
        "otherwise": sentences.otherwise(word),
        "support": sentences.support_of_word(word),
        "alternatives": _alternatives(word),
        "numbers": numbers_of_word(word),
    }


def _unsaid(report: Report, counterfactual: Counterfactual) -> dict[str, Any]:
    """A word that was asked about; an unknown one it stands in for is named first."""
    word = counterfactual.word
    stands_for = [
        sentences.unknown_word(each, len(report.likeliest))
        for each in report.unknown
        if each.nearest == word.text
    ]
    return {
        "text": readable(word.text),
        "place": counterfactual.place,
        "kind": "unsaid",
        "verdict": None,
        "otherwise": " ".join(stands_for) or None,
        "support": None,
        "alternatives": _alternatives(word),
        "numbers": numbers_of_word(word),
    }


def _unknown(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "text": each.text,
            "nearest": each.nearest,
            "sentence": sentences.unknown_word(each, len(report.likeliest)),
        }
        for each in report.unknown
    ]


def _vocabulary(report: Report) -> dict[str, Any]:
    """All words, and of those that had a chance: at which position, and how likely."""
    return {
        "words": " ".join(report.likeliest),
        "count": len(report.likeliest),
        "chances": {
            word: [place, likelihood(log_probability)]
            for word, (place, log_probability) in report.likeliest.items()
            if log_probability >= _RARE
        },
    }


def _alternatives(word: Word) -> list[dict[str, Any]]:
    return [
        {
            "text": readable(text),
            "probability": round(math.exp(log_probability), 4),
            "shown": likelihood(log_probability),
        }
        for text, log_probability in word.alternatives
    ]


def method_data(name: str) -> dict[str, Any]:
    """A method, as it is described on a page."""
    method = find_method(name)
    return {
        "name": name,
        "label": method.label,
        "sentence": method.sentence,
        "adds_up": method.adds_up,
        "signed": method.signed,
        "benchmark": describe_method(name),
    }


def _featured(report: Report) -> list[int]:
    """The words shown where the reader chose none: content words, most of the picture first."""
    words = dict(enumerate(word.text for word in report.caption.words))
    said = {
        why.place: why
        for why in report.explanations
        if why.method == report.explanations[0].method and words.get(why.place) == why.word
    }
    ranked = sorted(said, key=lambda p: (is_content(said[p].word), said[p].image_share))[::-1]
    return ranked or [0]


def _explanations(report: Report, asked: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """All explanations, with maps as fine as fit into the page."""
    for side in _SIDES:
        maps = [heatmap(why, side) for why in report.explanations]
        pictures = [png_uri(relevance.levels()) for relevance in maps]
        if sum(map(len, pictures)) <= _MAPS:
            break
    things: dict[str, Things] = {why.method: {} for why in report.explanations}
    for why, relevance in zip(report.explanations, maps, strict=True):
        if _is_seen_thing(report, why.place, why.word):
            things[why.method][why.place] = (readable(why.word), relevance)
    return [
        {
            "word": asked.index((why.place, why.word)),
            "method": why.method,
            "map": picture,
            "scale": relevance.scale,
            "why": _why(
                report, why, relevance, asked.index((why.place, why.word)), things[why.method]
            ),
            "summary": summary(why, relevance),
            "image": round(why.image_relevance, 4),
            "previous": [round(float(value), 4) for value in why.words],
            "numbers": numbers_of_explanation(why),
        }
        for why, relevance, picture in zip(report.explanations, maps, pictures, strict=True)
    ]


def _is_seen_thing(report: Report, place: int, text: str) -> bool:
    """Whether a word of the caption names an object or a place that the check supports."""
    words = report.caption.words
    if place >= len(words) or words[place].text != text:
        return False
    support = words[place].support
    return support is not None and support.verdict == SEEN and kind(text) in ("object", "place")


def _why(report: Report, why: Explanation, relevance: Heatmap, number: int, things: Things) -> str:
    words = report.caption.words
    if number >= len(words):
        other = report.counterfactuals[number - len(words)]
        return sentences.why_unsaid(why, relevance, other, words)
    # A thing that is seen is said because of itself, whatever else is there.
    others = {} if number in things else dict(things.values())
    thing = sentences.thing_shown(relevance, others)
    return sentences.why_said(why, relevance, tuple(word.text for word in words), thing)
