"""Look a dataset over before a day of training is spent on it."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.errors import DamagedPictureError, PictureError
from sightline.metrics.tokenizer import tokenize
from sightline.pictures import open_picture
from sightline.progress import progress

LONGEST_CAPTION = 100
"""Tokens. The longest of COCO's 616,767 captions has about half of it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding: whether it makes a dataset unfit as it is, and what `clean` does."""

    title: str
    is_error: bool
    remedy: str


MISSING = Kind("picture file missing", True, "picture left out")
UNREADABLE = Kind("picture unreadable", True, "picture left out")
TRUNCATED = Kind("picture damaged or cut short", True, "picture left out")
LEAK = Kind("same picture, other name, in two splits", True, "kept in test, else dev, else train")
TWO_SPLITS = Kind("picture in two splits", True, "kept in test, else dev, else train")
LISTED_TWICE = Kind("picture listed twice", True, "first entry kept")
NO_CAPTION = Kind("picture without captions", True, "picture left out")
NO_PICTURE = Kind("captions of an unlisted picture", True, "captions left out")
EMPTY = Kind("empty caption", True, "caption left out")
TOO_LONG = Kind(f"caption of over {LONGEST_CAPTION} tokens", True, "caption left out")
ENCODING = Kind("broken characters in a caption", True, "repaired where possible, else left out")
DUPLICATE = Kind("same picture under two names", False, "both kept, they are in one split")
NO_SPLIT = Kind("picture in no split", False, "kept; in no split it is not used")

KINDS = (
    *(MISSING, UNREADABLE, TRUNCATED, LEAK, TWO_SPLITS, LISTED_TWICE),
    *(NO_CAPTION, NO_PICTURE, EMPTY, TOO_LONG, ENCODING, DUPLICATE, NO_SPLIT),
)

_SAME_AS = "the same as "
_UNUSABLE = (MISSING, UNREADABLE, TRUNCATED, NO_CAPTION)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: of which kind, at which picture, and more precisely what."""

    kind: Kind
    name: str
    detail: str = ""


def check(dataset: CaptionDataset, *, show_progress: bool = False) -> list[Finding]:
    """Everything found in a dataset; every picture is decoded whole.

    >>> twice = CaptionedImage("a.jpg", Path("a.jpg"), ("",))
    >>> [finding.kind.title for finding in check(CaptionDataset((twice,)))]
    ['picture file missing', 'empty caption', 'picture without captions']
    """
    findings = [
        *_check_pictures(dataset, show_progress),
        *_check_listing(dataset),
        *(finding for image in dataset for finding in _check_captions(image)),
    ]
    # What is unusable anyway need not be in a split.
    unusable = {finding.name for finding in findings if finding.kind in _UNUSABLE}
    without = (image for image in dataset if image.split is None and image.name not in unusable)
    return findings + [Finding(NO_SPLIT, image.name) for image in without]


def _check_pictures(dataset: CaptionDataset, show_progress: bool) -> Iterator[Finding]:
    pictures = {image.name: image.picture for image in dataset}
    split_of = {image.name: image.split for image in dataset}
    names_of: dict[bytes, list[str]] = defaultdict(list)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(_digest, pictures.values())
        bar = progress(results, "checking", total=len(pictures), unit="picture", show=show_progress)
        for name, result in zip(pictures, bar, strict=True):
            if isinstance(result, bytes):
                names_of[result].append(name)
            else:
                yield Finding(result.kind, name, result.detail)
    for names in names_of.values():
        for other in names[1:]:
            kind = DUPLICATE if split_of[other] == split_of[names[0]] else LEAK
            yield Finding(kind, other, f"{_SAME_AS}{names[0]}")


def _digest(picture: object) -> bytes | Finding:
    """A hash of the decoded picture, or why it could not be decoded."""
    if not isinstance(picture, Path):
        return hashlib.blake2b(picture.tobytes(), digest_size=16).digest()  # type: ignore[attr-defined]
    if not picture.exists():
        return Finding(MISSING, "", str(picture))
    try:
        pixels = open_picture(picture)
    except PictureError as error:
        kind = TRUNCATED if isinstance(error, DamagedPictureError) else UNREADABLE
        return Finding(kind, "", str(error))
    digest = hashlib.blake2b(repr(pixels.size).encode(), digest_size=16)
    digest.update(pixels.tobytes())
    return digest.digest()


def _check_listing(dataset: CaptionDataset) -> Iterator[Finding]:
    splits: dict[str, list[str | None]] = defaultdict(list)
    for image in dataset:
        splits[image.name].append(image.split)
    for name, found in splits.items():
        if len(set(found)) > 1:
            yield Finding(
                TWO_SPLITS, name, " and ".join(str(split) for split in dict.fromkeys(found))
            )
        if len(found) > len(set(found)):
            yield Finding(LISTED_TWICE, name, f"{len(found)} times")
    for name, count in Counter(name for name, _ in dataset.orphans).items():
        yield Finding(NO_PICTURE, name, f"{count} captions")


def _check_captions(image: CaptionedImage) -> Iterator[Finding]:
    usable = 0
    for number, caption in enumerate(image.captions):
        where = f"caption {number}: {caption[:60]!r}"
        if not tokenize(caption):
            yield Finding(EMPTY, image.name, where)
            continue
        if len(tokenize(caption)) > LONGEST_CAPTION:
            yield Finding(TOO_LONG, image.name, where)
            continue
        if (repaired := _repair(caption)) != caption:
            yield Finding(ENCODING, image.name, where)
        usable += repaired is not None
    if not usable:
        yield Finding(NO_CAPTION, image.name, f"of {len(image.captions)} none is usable")


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")


def _repair(caption: str) -> str | None:
    """The caption as it was meant: itself if sound, `None` if characters are lost.

    UTF-8 that was read as Windows-1252 (`cafÃ©`) turns back into UTF-8; sound text never does.
    """
    try:
        meant = caption.encode("cp1252").decode("utf-8")
    except UnicodeError:
        meant = caption
    return None if _CONTROL.search(meant) else meant


def clean(dataset: CaptionDataset, findings: Iterable[Finding]) -> CaptionDataset:
    """The dataset without what was found wrong; `Kind.remedy` says what is done with each kind."""
    unusable = {finding.name for finding in findings if finding.kind in _UNUSABLE}
    same_as = {
        finding.name: finding.detail.removeprefix(_SAME_AS)
        for finding in findings
        if finding.kind is LEAK
    }
    kept: dict[str, CaptionedImage] = {}
    for image in dataset:
        image = _clean_captions(image)
        if image.name in unusable:
            continue
        key = same_as.get(image.name, image.name)
        # Evaluation splits stay as published, so that results remain comparable.
        if key not in kept or _priority(image) > _priority(kept[key]):
            kept[key] = image
    return replace(dataset, images=tuple(kept.values()), orphans=())


def _priority(image: CaptionedImage) -> int:
    return (None, "train", "dev", "test").index(image.split)


def _clean_captions(image: CaptionedImage) -> CaptionedImage:
    """The picture with its sound captions, and its groundings pointing at them."""
    moved: dict[int | None, int | None] = {None: None}
    captions: list[str] = []
    for number, caption in enumerate(image.captions):
        if 0 < len(tokenize(caption)) <= LONGEST_CAPTION and (sound := _repair(caption)):
            moved[number] = len(captions)
            captions.append(sound)
    groundings = tuple(
        replace(grounding, caption=moved[grounding.caption])
        if grounding.caption in moved
        else Grounding(grounding.label, grounding.boxes)
        for grounding in image.groundings
    )
    return replace(image, captions=tuple(captions), groundings=groundings)
