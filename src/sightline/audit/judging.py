"""Judging delivered captions word by word, with a captioner as the judge."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.audit.deliveries import Delivery
from sightline.captioner import Captioner
from sightline.captions import Caption, Word
from sightline.encoded_picture import EncodedPicture
from sightline.errors import PictureError
from sightline.kept_records import KeptRecords, Record
from sightline.progress import progress
from sightline.text.stop_words import is_content
from sightline.text.tokenizer import tokenize
from sightline.text.word_kinds import kind

UNKNOWN = "unknown"
"""The verdict on a word that the judge does not know."""

_TOGETHER = 8  # pictures whose captions are checked at once
_INSTEAD = 3  # words that the judge would rather have said
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Assignment:
    """A picture, and the captions that the systems (by number) gave it."""

    name: str
    picture: Path | None
    captions: tuple[tuple[int, str], ...]


def assignments(deliveries: Sequence[Delivery]) -> list[Assignment]:
    """What is to be judged, picture by picture: a picture of two systems is encoded once."""
    found: dict[str | Path, tuple[str, Path | None, list[tuple[int, str]]]] = {}
    for number, delivery in enumerate(deliveries):
        for given in delivery.captions:
            key = given.picture or given.name
            entry = found.setdefault(key, (given.name, given.picture, []))
            entry[2].append((number, given.text))
    return [
        Assignment(name, picture, tuple(captions)) for name, picture, captions in found.values()
    ]


def judge_all(
    captioner: Captioner,
    work: Sequence[Assignment],
    kept: KeptRecords,
    *,
    show_progress: bool = False,
) -> list[Record]:
    """A record for each picture; those that are kept already are not made again."""
    left = [each for each in work if _key(each) not in kept]
    bar = progress(
        None,
        "judging",
        total=len(work),
        done=len(work) - len(left),
        unit="picture",
        show=show_progress,
    )
    with bar:
        for first in range(0, len(left), _TOGETHER):
            some = left[first : first + _TOGETHER]
            for each, record in zip(some, _judge(captioner, some), strict=True):
                kept.add(_key(each), record)
            bar.update(len(some))
    return [kept[_key(each)] for each in work]


def _key(assignment: Assignment) -> str:
    return str(assignment.picture or assignment.name)


def _judge(captioner: Captioner, work: Sequence[Assignment]) -> Iterator[Record]:
    opened = [_open(captioner, each) for each in work]
    readable = [
        (number, system, picture, captioner.read(picture, text, alternatives=_INSTEAD))
        for number, (each, picture) in enumerate(zip(work, opened, strict=True))
        if isinstance(picture, EncodedPicture)
        for system, text in each.captions
        if tokenize(text)
    ]
    checked = captioner.check(
        [picture for _, _, picture, _ in readable], [read for *_, read in readable]
    )
    captions: list[list[Record]] = [[] for _ in work]
    for (number, system, _, _), caption in zip(readable, checked, strict=True):
        captions[number].append({"system": system, **_record(caption)})
    for each, picture, judged in zip(work, opened, captions, strict=True):
        yield {
            "picture": each.name,
            "file": None if each.picture is None else str(each.picture),
            "unfamiliar": any(caption.pop("unfamiliar") for caption in judged),
            "captions": judged,
            "problems": _problems(each, picture),
        }


def _open(captioner: Captioner, assignment: Assignment) -> EncodedPicture | str:
    """The picture, or what is wrong with it. One that is bad stops no others."""
    if assignment.picture is None:
        return "there is no such picture"
    try:
        return captioner.encode(assignment.picture)
    except PictureError as error:
        return str(error)


def _problems(assignment: Assignment, picture: EncodedPicture | str) -> list[str]:
    if isinstance(picture, str):
        return [picture]
    empty = sum(not tokenize(text) for _, text in assignment.captions)
    return ["a caption has no words"] * empty


def _record(caption: Caption) -> Record:
    return {
        "text": caption.text,
        "unfamiliar": bool(caption.unfamiliar),
        "words": [_word(word) for word in caption.words],
    }


def _word(word: Word) -> dict[str, Any]:
    content = is_content(word.text)
    verdict = word.support and word.support.verdict
    return {
        "text": word.text,
        "kind": kind(word.text) if content else None,
        "verdict": UNKNOWN if content and word.read_as is not None else verdict,
        "support": word.support and round(word.support.score, _DIGITS),
        "log_probability": round(word.log_probability, _DIGITS),
        "read_as": word.read_as,
        "instead": [
            {"text": text, "probability": round(math.exp(log_probability), _DIGITS)}
            for text, log_probability in word.alternatives
            if is_content(text)
        ],
    }
