"""The captions of a system: from a file that it wrote, or made by a captioner now."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.bulk.caption_all import caption_all
from sightline.bulk.items import Item
from sightline.bulk.records import model_name
from sightline.captioner import Captioner
from sightline.errors import DataError
from sightline.evaluation.scorable import Id, read_results
from sightline.parsing import read_csv
from sightline.printing import encodable

_NUMBER = re.compile(r"(?:.*_)?0*([0-9]{1,18})")  # COCO_val2014_000000000042, 000000000042


def captions_of(
    system: Path,
    pictures: Sequence[Item],
    folder: Path,
    *,
    device: str = "auto",
    show_progress: bool = False,
) -> dict[int, str]:
    """A system's captions by the number of the picture, for the pictures that it captioned.

    `system` is a file of captions (COCO's results, JSON lines or CSV), or a checkpoint or training
    run, which captions the pictures now, into a file in `folder`; interrupted, it goes on there.
    """
    if system.is_dir():
        captioner = Captioner.load(system, device=device)
        digest = model_name(captioner).rpartition(":")[2]
        kept = folder / f"captions-{digest}.jsonl"  # of this captioner, whatever was begun before
        caption_all(
            *(pictures, kept),
            captioner=captioner,
            skip_existing=True,
            show_progress=show_progress,
        )
        said = dict(_read(kept))
        return {n: said[item.name] for n, item in enumerate(pictures) if item.name in said}
    if not system.is_file():
        raise DataError(f"{system}: there is no such file of captions, and no such run")
    numbers = _names(pictures)
    matched: dict[int, str] = {}
    for name, caption in _read(system):
        number = next((numbers[key] for key in _keys(name) if key in numbers), None)
        if number is not None:
            if number in matched:
                raise DataError(f"{system}: captions '{pictures[number].inside}' more than once")
            matched[number] = encodable(caption)
    if not matched:
        raise DataError(f"{system}: captions none of the pictures; check --images")
    return matched


def _read(path: Path) -> Iterator[tuple[Id, str]]:
    if path.suffix != ".csv":
        yield from ((name, captions[0]) for name, captions in read_results(path))
        return
    columns, rows = read_csv(path)
    name = next((c for c in ("path", "image", "image_id", "file_name") if c in columns), "")
    if not name or "caption" not in columns:
        raise DataError(f"{path}: needs the columns 'path' (or 'image') and 'caption'")
    for row in rows:
        yield row[columns.index(name)], row[columns.index("caption")]


def _names(pictures: Sequence[Item]) -> dict[str, int]:
    """Whatever a file may call a picture, if it means one picture alone."""
    numbers: dict[str, int] = {}
    ambiguous = set()
    for number, item in enumerate(pictures):
        for key in {*_keys(item.name), *_keys(item.inside)}:
            if numbers.setdefault(key, number) != number:
                ambiguous.add(key)
    return {key: number for key, number in numbers.items() if key not in ambiguous}


def _keys(name: Id) -> list[str]:
    """Names of a picture, from the most to the least exact."""
    if isinstance(name, int):
        return [f"#{name}"]
    path = Path(name)
    number = _NUMBER.fullmatch(path.stem)
    return [name, path.name, path.stem, *([f"#{int(number[1])}"] if number else [])]
