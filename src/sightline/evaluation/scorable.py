"""Read what a user wants scored: captions by picture, from the files people have."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL.Image import Image

from sightline.data.boxes import read_boxes
from sightline.data.dataset import CaptionedImage, captions_of
from sightline.data.fields import field, load_json, read_lines, read_text
from sightline.data.readers import read_dataset
from sightline.errors import DataError
from sightline.metrics.coco_objects import CATEGORIES
from sightline.parsing import parse_json

Id = str | int
_SHOWN = 3  # ids named in an error


@dataclass(frozen=True)
class Scorable:
    """A system's captions and the references side by side; `images[i]` names the picture of both.

    `samples[i]` are the system's captions of it, best first; `categories[i]` the COCO categories
    annotated in it, where boxes were read.
    """

    images: tuple[Id, ...]
    samples: tuple[tuple[str, ...], ...]
    references: tuple[tuple[str, ...], ...]
    categories: tuple[frozenset[str], ...] | None = None
    pictures: tuple[Path | Image, ...] | None = None  # where the references name them

    @property
    def candidates(self) -> tuple[str, ...]:
        """The one caption of each picture that is scored."""
        return tuple(captions[0] for captions in self.samples)


def read_scorable(
    results: Path,
    references: Sequence[Path],
    split: str | None = None,
    *,
    boxes: Path | None = None,
    several: bool = False,
    images: Path | None = None,
) -> Scorable:
    """Match a system's captions with their references.

    `results` is COCO's results format (`[{"image_id": 42, "caption": "..."}]`), JSON lines
    (`{"image": "a.jpg", "captions": ["..."]}`, or `"caption": "..."`), or plain text. References of
    the first two are anything `data.read_dataset` reads, of which `split` picks a part; references
    of plain text are plain text, line i for line i, in several files or separated by tabs.
    `boxes` is COCO's `instances_*.json`. With `several`, JSON lines may hold more than one caption
    of a picture. `images` is the folder of the references' pictures.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> results, references = folder / "results.txt", folder / "references.txt"
    >>> _ = results.write_text("a dog runs"), references.write_text("the dog\\ta dog is running")
    >>> read_scorable(results, [references]).references
    (('the dog', 'a dog is running'),)
    """
    if _is_text(results):
        if split is not None:
            raise DataError(f"{results}: plain text has no splits; leave out --split")
        if boxes is not None:
            raise DataError(f"{results}: plain text names no pictures, so {boxes} cannot be used")
        return _read_texts(results, references)
    if len(references) != 1 or _is_text(references[0]):
        raise DataError(
            f"{results} names its pictures, so its references must too: give one dataset file or "
            f"folder, not {', '.join(map(str, references)) or 'none'}"
        )
    captions = list(read_results(results, several))
    dataset = read_dataset(references[0], images)
    if boxes is not None:
        dataset = read_boxes(boxes, dataset)
    pictures = dataset.images if split is None else dataset.split(split)
    scorable = _match(results, captions, references[0], pictures)
    scorable = replace(scorable, pictures=tuple(picture.picture for picture in pictures))
    return scorable if boxes is None else replace(scorable, categories=_labels(boxes, pictures))


def read_training(path: Path) -> list[str]:
    """The captions a system was trained on: the split "train", or all where there are no splits.

    `path` is anything `data.read_dataset` reads, or plain text with a caption on each line.
    """
    if _is_text(path):
        return _text_lines(path)
    dataset = read_dataset(path)
    has_splits = any(image.split for image in dataset)
    return list(captions_of(dataset.split("train") if has_splits else dataset))


def _labels(boxes: Path, pictures: Sequence[CaptionedImage]) -> tuple[frozenset[str], ...]:
    labels = tuple(frozenset(g.label for g in picture.groundings) for picture in pictures)
    if unknown := frozenset().union(*labels).difference(CATEGORIES):
        raise DataError(
            f"{boxes}: '{min(unknown)}' is not a COCO category; give a COCO instances_*.json file"
        )
    return labels


def _is_text(path: Path) -> bool:
    return path.suffix == ".txt" and not path.name.endswith("token.txt")


def _read_texts(results: Path, references: Sequence[Path]) -> Scorable:
    candidates = _text_lines(results)
    merged: list[tuple[str, ...]] = [() for _ in candidates]
    for path in references:
        if not _is_text(path):
            raise DataError(f"{path}: must be plain text (.txt), because {results} is")
        lines = _text_lines(path)
        if len(lines) != len(candidates):
            raise DataError(
                f"{path} has {len(lines)} lines but {results} has {len(candidates)}: "
                "their lines must correspond"
            )
        for number, line in enumerate(lines):
            merged[number] += tuple(text for text in line.split("\t") if text.strip())
    numbers = tuple(range(1, len(candidates) + 1))
    samples = tuple((caption,) for caption in candidates)
    _refuse(results, "empty caption in line", _where_empty(numbers, samples))
    unreferenced = (number for number, texts in zip(numbers, merged, strict=True) if not texts)
    _refuse(references[0], "no reference in line", unreferenced)
    return Scorable(numbers, samples, tuple(merged))


def _text_lines(path: Path) -> list[str]:
    """Every line, empty ones too: the place of a line is its picture."""
    lines = read_text(path).split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise DataError(f"{path}: is empty")
    return lines


def read_results(path: Path, several: bool = False) -> Iterator[tuple[Id, tuple[str, ...]]]:
    """Picture and captions of each record, in the file's order.

    `path` is COCO's results format or JSON lines, as `read_scorable` describes them; JSON lines may
    also be what `sightline caption -o` writes.
    """
    if path.suffix == ".jsonl":
        for number, line in read_lines(path):
            where = f"{path}, line {number}"
            yield _result(parse_json(line, where, DataError), where, several)
    elif path.suffix == ".json":
        content = load_json(path)
        if not isinstance(content, list):
            raise DataError(
                f"{path}: results are a list of objects with 'image_id' and 'caption', "
                f"found {type(content).__name__}"
            )
        for number, record in enumerate(content):
            yield _result(record, f"{path}, record {number}", several)
    else:
        raise DataError(f"{path}: results are .json (COCO's format), .jsonl or .txt")


def _result(record: Any, where: str, several: bool) -> tuple[Id, tuple[str, ...]]:
    names = ("image", "path") if isinstance(record, dict) else ()
    name = next((name for name in names if name in record), "image_id")
    ours = name == "image"
    picture = field(record, name, (str, int), where)
    if not ours or "captions" not in record:
        return picture, (field(record, "caption", str, where),)
    captions = field(record, "captions", list, where)
    if not captions or not all(isinstance(caption, str) for caption in captions):
        raise DataError(f"{where}: 'captions' must be a list of strings, and not empty")
    if len(captions) > 1 and not several:
        raise DataError(
            f"{where}: a result must have one caption, but 'captions' has {len(captions)} "
            "(several are only for --diversity)"
        )
    return picture, tuple(captions)


def _match(
    results: Path,
    captions: Sequence[tuple[Id, tuple[str, ...]]],
    references: Path,
    pictures: Sequence[CaptionedImage],
) -> Scorable:
    """Candidates and references in the order of the references."""
    if not captions:
        raise DataError(f"{results}: contains no captions")
    names = [name for name, _ in captions]
    _refuse(results, "captioned more than once: picture", _repeated(names))
    _refuse(results, "empty caption of picture", _where_empty(names, [c for _, c in captions]))
    _refuse(references, "listed more than once: picture", _repeated([p.name for p in pictures]))
    # A results file calls a picture by its number or by its file name; JSON may quote the number.
    called = {str(key): picture.name for picture in pictures for key in (picture.name, picture.id)}
    _refuse(results, f"not in {references}: picture", (n for n in names if str(n) not in called))
    owners = [called[str(name)] for name in names]
    _refuse(results, "captioned under two names: picture", _repeated(owners))
    given = dict(zip(owners, captions, strict=True))
    advice = (
        "; choose a split if these results are of one" if any(p.split for p in pictures) else ""
    )
    missing = (picture.id for picture in pictures if picture.name not in given)
    _refuse(results, "no caption of picture", missing, advice)
    kept = [tuple(text for text in picture.captions if text.strip()) for picture in pictures]
    unreferenced = (p.id for p, texts in zip(pictures, kept, strict=True) if not texts)
    _refuse(references, "no reference for picture", unreferenced)
    ordered = [given[picture.name] for picture in pictures]
    images, samples = zip(*ordered, strict=True)
    return Scorable(images, samples, tuple(kept))


def _repeated(names: Sequence[Id]) -> Iterator[Id]:
    return (name for name, times in Counter(names).items() if times > 1)


def _where_empty(names: Sequence[Id], samples: Sequence[Sequence[str]]) -> Iterator[Id]:
    pairs = zip(names, samples, strict=True)
    return (name for name, captions in pairs if not all(text.strip() for text in captions))


def _refuse(path: Path, problem: str, ids: Iterable[Id], advice: str = "") -> None:
    """Raise an error that names the first few of the ids, if there are any."""
    names = list(ids)
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise DataError(f"{path}: {problem} {', '.join(map(str, names[:_SHOWN]))}{more}{advice}")
