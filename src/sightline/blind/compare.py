"""`compare_blind`: two systems' captions in, a study that raters can begin out."""

import random
import secrets
from collections.abc import Sequence
from pathlib import Path

from PIL.Image import Resampling

from sightline.blind.study import (
    PICTURES,
    QUESTIONS,
    STUDY,
    Check,
    Pair,
    Question,
    Study,
    new_raters,
)
from sightline.blind.systems import captions_of
from sightline.bulk.items import Item, readable
from sightline.bulk.sources import open_source
from sightline.config import require_at_least
from sightline.errors import ConfigError, PictureError
from sightline.files import atomic_write
from sightline.pictures import open_picture
from sightline.progress import progress
from sightline.text.stop_words import is_content
from sightline.text.tokenizer import tokenize

_UNFINISHED = "unfinished"  # while a study is set up
_SIDE = 1280  # of the copies that raters see
_READ_THIS = "This one checks that you read: please choose this caption for every question"


def compare_blind(
    first: Path | str,
    second: Path | str,
    images: Path | str,
    folder: Path | str,
    *,
    raters: Sequence[str] = ("rater 1",),
    questions: Sequence[Question] = QUESTIONS,
    names: tuple[str, str] | None = None,
    pictures: int | None = None,
    checks: int | None = None,
    each: int | None = None,
    as_written: bool = False,
    seed: int = 0,
    device: str = "auto",
    show_progress: bool = False,
) -> Study:
    """Set up a blind comparison of two systems in a new folder.

    A system is a file of captions, or a run that captions `images` now. `pictures` of those that
    both captioned are drawn, by `seed`. `checks` pairs have a known answer (by default one in
    twenty, at least two). `each` pair is seen by so many raters; by default by all. Captions begin
    with a capital and end without a full stop, since a habit of spelling would tell the systems
    apart; not if `as_written`.

    >>> study = compare_blind("ours.json", "theirs.json", "photos", "study")  # doctest: +SKIP
    >>> study.raters[0].token  # doctest: +SKIP
    'mY8S…'
    """
    folder, systems = Path(folder), (Path(first), Path(second))
    require_at_least(1, "compare-blind", pictures=pictures, each=each)
    require_at_least(0, "compare-blind", checks=checks)
    _begin(folder)
    names = names or _names(systems)
    listed = [item for item in open_source(images) if isinstance(item, Item)]
    items = _sample(listed, systems, pictures, seed)
    captions = [
        captions_of(system, items, folder, device=device, show_progress=show_progress)
        for system in systems
    ]
    both = [number for number in range(len(items)) if all(number in c for c in captions)]
    if not both:
        raise ConfigError("there is no picture that both systems captioned")
    if pictures is not None and len(both) > pictures:
        both = sorted(random.Random(seed).sample(both, pictures))
    spelt = [{n: _spell(c[n], as_written) for n in both} for c in captions]
    same = [n for n in both if tokenize(spelt[0][n]) == tokenize(spelt[1][n])]
    shown = [n for n in both if n not in set(same)]
    if not shown:
        raise ConfigError("both systems say the same of every picture: there is nothing to ask")
    copies = _copy(items, shown, folder / PICTURES, show_progress)
    pairs = [
        Pair(copies[n], readable(items[n].inside), (spelt[0][n], spelt[1][n]))
        for n in shown
        if n in copies
    ]
    if not pairs:
        raise PictureError("none of the pictures can be read")
    study = Study(
        names,
        tuple(questions),
        tuple(pairs),
        _checks(pairs, questions, _number_of_checks(checks, len(pairs)), seed),
        new_raters(raters),
        secrets.token_hex(16),
        tuple(readable(items[n].inside) for n in same),
        each,
    )
    study.save(folder)
    (folder / _UNFINISHED).unlink()
    return study


def _begin(folder: Path) -> None:
    """Mark the folder as ours; one that holds anything else is refused."""
    if not (folder / _UNFINISHED).exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            what = "holds a study" if (folder / STUDY).exists() else "is not empty"
            raise ConfigError(f"{folder}: {what}; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _UNFINISHED).touch()


def _names(systems: tuple[Path, Path]) -> tuple[str, str]:
    """What to call two systems: as little of their paths as tells them apart."""
    for parts in range(1, 1 + max(len(s.resolve().parts) for s in systems)):
        first, second = (readable("/".join(s.resolve().parts[-parts:])) for s in systems)
        if first != second:
            return first, second
    raise ConfigError(f"{systems[0]}: a system cannot be compared with itself")


def _sample(
    items: list[Item], systems: tuple[Path, Path], pictures: int | None, seed: int
) -> list[Item]:
    """All pictures; or only those that will be shown, where both systems have yet to caption."""
    if pictures is None or len(items) <= pictures or not all(s.is_dir() for s in systems):
        return items
    return [items[n] for n in sorted(random.Random(seed).sample(range(len(items)), pictures))]


def _spell(caption: str, as_written: bool) -> str:
    if as_written:
        return caption
    text = " ".join(caption.split()).rstrip(" .")
    return text[:1].upper() + text[1:]


def _copy(
    items: Sequence[Item], shown: Sequence[int], folder: Path, show_progress: bool
) -> dict[int, str]:
    """Copies without anything but pixels, by the number of the picture; unreadable ones are not."""
    copies: dict[int, str] = {}
    bar = progress(shown, "copying", total=len(shown), unit="picture", show=show_progress)
    for number in bar:
        try:
            picture = open_picture(items[number].read(), reduced_to=_SIDE)
        except PictureError:
            continue
        picture.thumbnail((_SIDE, _SIDE), Resampling.LANCZOS)
        name = f"{len(copies) + 1:06d}.jpg"
        with atomic_write(folder / name, "wb") as file:
            picture.save(file, "JPEG", quality=88)
        copies[number] = name
    return copies


def _number_of_checks(checks: int | None, pairs: int) -> int:
    return max(2, round(pairs / 20)) if checks is None else checks


def _checks(
    pairs: Sequence[Pair], questions: Sequence[Question], number: int, seed: int
) -> tuple[Check, ...]:
    """Pairs with a known answer.

    Where relevance is asked: a caption of the picture against one of another picture that shares
    no content word with it, if there is such a picture. Else a caption that says what to choose.
    """
    drawn = random.Random(seed)
    chosen = [drawn.choice(pairs) for _ in range(number)]
    relevance = [question.name for question in questions if question.name == "relevance"]
    checks = []
    for pair in chosen:
        right = drawn.choice(pair.captions)
        said = _content(" ".join(pair.captions))
        others = [c for p in pairs for c in p.captions if not _content(c) & said]
        if relevance and others:
            checks.append(Check(pair.picture, (right, drawn.choice(others)), tuple(relevance)))
        else:
            everything = tuple(question.name for question in questions)
            checks.append(Check(pair.picture, (_READ_THIS, right), everything))
    return tuple(checks)


def _content(caption: str) -> set[str]:
    return {word for word in tokenize(caption) if is_content(word)}
