"""Find problems in a dataset before training on it."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from PIL.Image import Image

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.errors import DamagedPictureError, PictureError
from sightline.pictures import open_picture
from sightline.progress import progress
from sightline.text.tokenizer import tokenize

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
DUPLICATE = Kind("same picture under two names", False, "both kept; no two splits share it")
NO_SPLIT = Kind("picture in no split", False, "kept; in no split it is not used")

KINDS = (
    *(MISSING, UNREADABLE, TRUNCATED, LEAK, TWO_SPLITS, LISTED_TWICE),
    *(NO_CAPTION, NO_PICTURE, EMPTY, TOO_LONG, ENCODING, DUPLICATE, NO_SPLIT),
)

_UNUSABLE = (MISSING, UNREADABLE, TRUNCATED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: of which kind, at which picture, and more precisely what."""

    kind: Kind
    name: str
    detail: str = ""


def check(dataset: CaptionDataset, *, show_progress: bool = False) -> list[Finding]:
    """Everything found in a dataset; every picture is decoded whole.

    >>> phantom = CaptionedImage("phantom.jpg", Path("phantom.jpg"), ("",))
    >>> [finding.kind.title for finding in check(CaptionDataset((phantom,)))]
    ['picture file missing', 'empty caption', 'picture without captions']
    """
    findings = [
        *_check_pictures(dataset, show_progress),
        *_check_listing(dataset),
        *(finding for image in dataset for finding in _check_captions(image)),
    ]
    # What is unusable anyway need not be in a split.
    unusable = {f.name for f in findings if f.kind in (*_UNUSABLE, NO_CAPTION)}
    without = (image for image in dataset if image.split is None and image.name not in unusable)
    return findings + [Finding(NO_SPLIT, image.name) for image in without]


def _check_pictures(dataset: CaptionDataset, show_progress: bool) -> Iterator[Finding]:
    pictures = {image.name: image.picture for image in dataset}
    split_of = {image.name: image.split for image in sorted(dataset, key=_priority)}
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
        kept = max(names, key=lambda name: _PRIORITY.index(split_of[name]))
        for name in names:
            if name != kept:
                kind = DUPLICATE if split_of[name] in (split_of[kept], None) else LEAK
                yield Finding(kind, name, f"the same as {kept}")


def _digest(picture: Path | Image) -> bytes | Finding:
    """A hash of the decoded picture, or why it could not be decoded."""
    if isinstance(picture, Path):
        if not os.path.exists(picture):
            return Finding(MISSING, "", str(picture))
        try:
            picture = open_picture(picture)
        except PictureError as error:
            kind = TRUNCATED if isinstance(error, DamagedPictureError) else UNREADABLE
            return Finding(kind, "", str(error))
    digest = hashlib.blake2b(f"{picture.mode} {picture.size}".encode(), digest_size=16)
    digest.update(picture.tobytes())
    return digest.digest()


def _check_listing(dataset: CaptionDataset) -> Iterator[Finding]:
    splits: dict[str, list[str | None]] = defaultdict(list)
    for image in dataset:
        splits[image.name].append(image.split)
    for name, listings in splits.items():
        named = dict.fromkeys(split for split in listings if split is not None)
        if len(named) > 1:
            yield Finding(TWO_SPLITS, name, " and ".join(named))
        if len(listings) > max(len(named), 1):
            yield Finding(LISTED_TWICE, name, f"{len(listings)} times")
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


# Control characters other than white space, halves of surrogate pairs, the replacement character.
_LOST = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffd]")


def _repair(caption: str) -> str | None:
    """The caption as it was meant: itself if sound, `None` if characters are lost.

    UTF-8 that was read as Windows-1252 (`cafÃ©`) turns back into UTF-8; sound text never does.
    """
    try:
        meant = caption.encode("cp1252").decode("utf-8")
    except UnicodeError:
        meant = caption
    return None if _LOST.search(meant) else meant


def clean(dataset: CaptionDataset, findings: Iterable[Finding]) -> CaptionDataset:
    """The dataset without what was found wrong; `Kind.remedy` says what is done with each kind."""
    left_out = {finding.name for finding in findings if finding.kind in (*_UNUSABLE, LEAK)}
    kept: dict[str, CaptionedImage] = {}
    for image in dataset:
        image = _clean_captions(image)
        if image.name in left_out or not image.captions:
            continue
        if image.name not in kept or _priority(image) > _priority(kept[image.name]):
            kept[image.name] = image
    return replace(dataset, images=tuple(kept.values()), orphans=())


# Evaluation splits stay as published, so that results remain comparable.
_PRIORITY = (None, "train", "dev", "test")


def _priority(image: CaptionedImage) -> int:
    return _PRIORITY.index(image.split)


def _clean_captions(image: CaptionedImage) -> CaptionedImage:
    """The picture with its sound captions, and its groundings pointing at them."""
    moved: dict[int | None, int | None] = {None: None}
    captions: list[str] = []
    for number, caption in enumerate(image.captions):
        tokens = tokenize(caption)
        if 0 < len(tokens) <= LONGEST_CAPTION and (sound := _repair(caption)):
            if len(tokenize(sound)) == len(tokens):  # else the spans no longer hold
                moved[number] = len(captions)
            captions.append(sound)
    groundings = tuple(
        replace(grounding, caption=moved[grounding.caption])
        if grounding.caption in moved
        else Grounding(grounding.label, grounding.boxes)
        for grounding in image.groundings
    )
    return replace(image, captions=tuple(captions), groundings=groundings)
