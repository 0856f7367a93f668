"""Captions that somebody delivered, from the files people have."""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.bulk.items import readable
from sightline.bulk.sources import PICTURES
from sightline.bulk.tables import COLUMNS, open_parquet
from sightline.data.fields import load_json, read_lines, read_text
from sightline.data.readers import read_dataset
from sightline.errors import DataError
from sightline.parsing import parse_json, read_csv
from sightline.printing import encodable

# Columns and fields that hold captions in the files people have, the likeliest first.
CAPTIONS = ("caption", "captions", "text", "description", "alt_text", "alt", "prediction")
NAMES = (*COLUMNS, "image_id", "id")
TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet")

Row = dict[str, Any]
_LONGEST = 4000  # letters of a picture's name: systems have no longer paths


@dataclass(frozen=True, slots=True)
class GivenCaption:
    """A caption, and the picture that it is said to describe (None: there is no such picture)."""

    name: str  # of the picture, as the file has it
    picture: Path | None
    text: str


@dataclass(frozen=True)
class Delivery:
    """The captions of one system, in the order of their file."""

    name: str
    captions: tuple[GivenCaption, ...]


def read_delivery(path: Path | str, images: Path | str | None = None) -> Delivery:
    """Read captions from a file or a folder; `images` is the folder of their pictures.

    | what `path` is                  | what is read                                              |
    | ------------------------------- | --------------------------------------------------------- |
    | a folder                        | its `metadata.jsonl`, or else `dog.txt` for each `dog.jpg` |
    | `*.csv`, `*.tsv`, `*.parquet`   | a column of pictures and one of captions                  |
    | `*.jsonl`, `metadata.jsonl`     | an object with both on each line                          |
    | `*.json`, a list                | COCO results: `image_id` and `caption`                    |
    | `*.json`, an object             | COCO or Karpathy captions, all of them                    |

    Pictures are called by their path in the folder, by their file name with or without its ending,
    or by COCO's number.
    """
    path = Path(path)
    if images is not None and not Path(images).is_dir():
        raise DataError(f"{images}: no such folder of pictures")
    if path.is_dir():
        table = path / "metadata.jsonl"
        base = path if images is None else Path(images)
        pairs = _of_rows(table, base) if table.is_file() else _of_sidecars(path, base)
    elif not path.is_file():
        raise DataError(f"{path}: no such file or folder")
    elif path.suffix.lower() not in TABLES:
        raise DataError(
            f"{path}: captions are a {', '.join(TABLES)} file, or a folder of .txt files; see "
            "sightline audit --help"
        )
    else:
        base = path.parent if images is None else Path(images)
        pairs = _of_rows(path, base)
    captions = tuple(
        replace(given, name=readable(given.name), text=encodable(given.text)) for given in pairs
    )
    if not captions:
        raise DataError(f"{path}: holds no captions")
    return Delivery(path.resolve().name if path.is_dir() else path.stem, captions)


def _of_sidecars(folder: Path, images: Path) -> Iterator[GivenCaption]:
    """A text file for each picture, laid out as the pictures are."""
    pictures = _Pictures(images)
    for file in sorted(folder.rglob("*.txt")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        yield GivenCaption(name, pictures.find(name), " ".join(read_text(file).split()))


def _of_rows(table: Path, images: Path) -> Iterator[GivenCaption]:
    if table.suffix.lower() == ".json" and isinstance(load_json(table), dict):
        for image in read_dataset(table, images):
            found = image.picture if isinstance(image.picture, Path) else None
            found = found if found is not None and found.is_file() else None
            yield from (GivenCaption(image.name, found, text) for text in image.captions)
        return
    pictures = _Pictures(images)
    for where, row in _rows(table):
        name, texts = row[_choose(where, row, NAMES)], row[_choose(where, row, CAPTIONS)]
        if isinstance(name, dict):  # an image of Hugging Face's datasets
            name = name.get("path")
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise DataError(f"{where}: names no picture")
        if len(str(name)) > _LONGEST:
            raise DataError(f"{where}: the name of its picture has over {_LONGEST:,} letters")
        texts = texts if isinstance(texts, list) else [texts]
        if not all(isinstance(text, str | None) for text in texts):
            raise DataError(f"{where}: its caption is not a text")
        for text in texts:
            yield GivenCaption(str(name), pictures.find(str(name)), text or "")


def _rows(table: Path) -> Iterator[tuple[str, Row]]:
    """Where each row is, for an error, and what it holds."""
    suffix = table.suffix.lower()
    if suffix == ".jsonl":
        for number, line in read_lines(table):
            where = f"{table}, line {number}"
            yield where, _object(parse_json(line, where, DataError), where)
    elif suffix == ".json":
        content = load_json(table)
        if not isinstance(content, list):
            raise DataError(f"{table}: neither a list of captions nor a dataset")
        for number, row in enumerate(content):
            yield f"{table}, record {number}", _object(row, f"{table}, record {number}")
    elif suffix == ".parquet":
        yield from _parquet_rows(table)
    else:
        names, rows = read_csv(table, "\t" if suffix == ".tsv" else ",")
        for number, row in enumerate(rows, 1):
            yield f"{table}, row {number}", dict(zip(names, row, strict=True))


def _parquet_rows(table: Path) -> Iterator[tuple[str, Row]]:
    with open_parquet(table) as file:
        names = file.schema_arrow.names
        where = str(table)
        columns = [_choose(where, names, NAMES), _choose(where, names, CAPTIONS)]
        for batch in file.iter_batches(1024, columns=columns):
            yield from ((where, row) for row in batch.to_pylist())


def _object(row: Any, where: str) -> Row:
    if not isinstance(row, dict):
        raise DataError(f"{where}: not an object with a picture and a caption")
    return row


def _choose(where: str, row: Row | Sequence[str], names: Sequence[str]) -> str:
    for name in names:
        if name in row:
            return name
    what = "picture" if names is NAMES else "caption"
    has = ", ".join(str(name) for name in row) or "nothing"
    raise DataError(f"{where}: which is the {what}? It has {has}; call it {' or '.join(names[:3])}")


class _Pictures:
    """The pictures of a folder, by what files of captions call them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str) -> Path | None:
        """A path in the folder, a file name, a name without its ending, or COCO's number."""
        for path in (self.folder / name, self.folder / Path(name).name):
            if os.path.isfile(path):  # (False also for names that no file can have)
                return path
        if re.fullmatch(r"[0-9]+", name) and int(name) in self._numbered:
            return self._numbered[int(name)]
        return self._by_name.get(name) or self._by_name.get(Path(name).name)

    @functools.cached_property
    def _all(self) -> list[Path]:
        return [
            path
            for path in sorted(self.folder.rglob("*"))
            if os.path.splitext(path.name)[1].lower() in PICTURES
        ]

    @functools.cached_property
    def _by_name(self) -> dict[str, Path]:
        """File names and paths in the folder, with their ending and without; the first counts."""
        names: dict[str, Path] = {}
        for path in self._all:
            inside = path.relative_to(self.folder)
            for form in (inside, inside.with_suffix(""), Path(path.name), Path(path.stem)):
                names.setdefault(form.as_posix(), path)
        return names

    @functools.cached_property
    def _numbered(self) -> dict[int, Path]:
        """`000000000042.jpg` and `COCO_val2014_000000000042.jpg` are picture 42."""
        numbers: dict[int, Path] = {}
        for path in self._all:
            if match := re.search(r"(?:^|_)([0-9]+)$", path.stem):
                numbers.setdefault(int(match[1]), path)
        return numbers
