"""What an audit says in words. The report only lays it out."""

from collections.abc import Sequence
from typing import Any

from sightline.audit.judging import UNKNOWN
from sightline.captions import NOT_SUPPORTED, SEEN
from sightline.kept_records import Record


def headline(systems: Sequence[dict[str, Any]]) -> str:
    """The audit in a sentence or two.

    >>> headline([{"name": "vendor", "captions": 2, "captions_marked": 1, "words": 10,
    ...            "not supported": 2, "unknown": 0}])
    '1 of 2 captions has a word that the picture does not support: 2 of 10 words (20 %).'
    """
    sentences = []
    for system in systems:
        marked, captions = system["captions_marked"], system["captions"]
        known = system["words"] - system[UNKNOWN]
        name = f"{system['name']}: " if len(systems) > 1 else ""
        if not marked:
            sentences.append(f"{name}No word of {captions:,} captions is marked as made up.")
            continue
        has = "has" if marked == 1 else "have"
        share = f"{system[NOT_SUPPORTED]:,} of {known:,} words"
        sentences.append(
            f"{name}{marked:,} of {captions:,} captions {has} a word that the picture does not "
            f"support: {share} ({system[NOT_SUPPORTED] / known:.0%}).".replace("%)", " %)")
        )
    return " ".join(sentences)


def of_system(system: dict[str, Any]) -> str:
    """How much was judged, with the interval of what matters most."""
    sentence = f"{system['captions']:,} captions, {system['words']:,} content words."
    share = system["scores"].get("words not supported")
    if share is None or share["low"] is None:
        return sentence
    value, low, high = (f"{100 * share[name]:.1f}" for name in ("value", "low", "high"))
    return f"{sentence} Not supported: {value} % of known words (95 % interval {low} to {high})."


def of_word(word: Record) -> str | None:
    """What the judge thinks of a word, for whoever points at it.

    >>> of_word({"text": "mug", "verdict": "unknown", "read_as": "cup", "support": 0.25,
    ...          "instead": []})
    'unknown to the judge, which read “cup” instead (support 25 %)'
    """
    if word["verdict"] is None:
        return None
    support = "" if word["support"] is None else f"support {100 * word['support']:.0f} %"
    if word["verdict"] == UNKNOWN:
        if word["read_as"].startswith("<"):
            return "unknown to the judge; it knows no word that is near"
        return f"unknown to the judge, which read “{word['read_as']}” instead ({support})"
    if word["verdict"] == SEEN or not word["instead"]:
        return f"{word['verdict']}: {support}"
    return f"{word['verdict']}: {support}; {_instead(word)}"


def of_caption(caption: Record) -> str | None:
    """What the judge would rather have said for the words that it does not see."""
    notes = [
        f"“{word['text']}”: {_instead(word)}"
        for word in caption["words"]
        if word["verdict"] == NOT_SUPPORTED and word["instead"]
    ]
    return "; ".join(notes) + "." if notes else None


def _instead(word: Record) -> str:
    first = word["instead"][0]
    return f"the judge would rather say “{first['text']}” ({100 * first['probability']:.0f} %)"


def notes(problems: int, unfamiliar: int, fitted: bool) -> list[str]:
    """What a reader should know before the numbers."""
    found = []
    if not fitted:
        found.append(
            "This judge was fitted to its own captions alone, so its verdicts on captions of "
            "others are rough. Run sightline fit-support on it again."
        )
    if problems:
        found.append(f"{problems:,} captions or pictures could not be judged; see below.")
    if unfamiliar:
        are = "picture is" if unfamiliar == 1 else "pictures are"
        found.append(
            f"{unfamiliar:,} {are} unlike those that the judge knows; "
            "there its verdicts may be wrong."
        )
    return found


COMPARISON = (
    "On the pictures that both captioned, values times 100. The intervals are paired: pictures are "
    "drawn again and again, the same for both systems."
)
CALIBRATED_HERE = (
    "Of words with about this support (in %), the share that the references confirm. The dark line "
    "is the support: where bar and line meet, the judge is calibrated for these captions. "
    "References leave things out, so bars are too low rather than too high."
)
CALIBRATED_THERE = (
    "Of words with about this support (in %), the share that was right among the captions that the "
    "judge was fitted on: words that people wrote, and words that were swapped for others of their "
    "kind. The dark line is the support. With --refs, it is measured on these captions."
)
