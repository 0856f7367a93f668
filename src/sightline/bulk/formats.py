"""Formats that captions are written in, by name and by the suffix of the output."""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from sightline.bulk.arrays import CocoResults, FiftyOneLabels, LabelStudioTasks
from sightline.bulk.format import Existing, Format, json_line, read_rows
from sightline.bulk.items import Item, readable
from sightline.bulk.parquet import ParquetFile, ParquetParts
from sightline.bulk.records import Record
from sightline.bulk.sidecars import TextSidecars, XmpSidecars
from sightline.config import nearest
from sightline.errors import ConfigError, DataError, PictureError
from sightline.parsing import read_csv


class JsonLines(Format):
    """One object per picture and line."""


class CsvTable(Format):
    """One line per picture; lists are JSON in their cell."""

    columns = ("path", "sha256", "caption", "log_probability", "words", "unfamiliar")
    last = ("model", "version")

    def _columns(self) -> list[str]:
        boxes = ("boxes",) if self.attention else ()
        return [*self.columns, *boxes, *self.optional, *self.last]

    def header(self) -> bytes:
        return _csv_line(self._columns())

    def lines(self, records: Sequence[Record]) -> bytes:
        rows = [record.row(self.attention) for record in records]
        return b"".join(_csv_line([_cell(row.get(c)) for c in self._columns()]) for row in rows)

    def read_rows(self) -> Existing:
        names, rows = read_csv(self.rows)
        if "path" not in names:
            raise DataError(f"{self.rows}: not a table of captions: it has no column path")
        if names != self._columns():
            raise self.other_columns()
        for row in rows:
            cells = dict(zip(names, row, strict=True))
            yield cells["path"], cells.get("sha256")

    def some_rows(self, numbers: Set[int]) -> Iterator[bytes]:
        yield self.header()
        _, rows = read_csv(self.rows)
        yield from (_csv_line(row) for number, row in enumerate(rows) if number in numbers)


class MetadataLines(Format):
    """`file_name` and `text`, as Hugging Face's ImageFolder reads them beside the pictures."""

    def name(self, item: Item) -> str:
        """Its path from the output's folder; a `PictureError` for one that is elsewhere.

        A link in the folder is called by its own name, wherever it leads to.
        """
        if item.path is None or item.offset is not None:
            raise PictureError(f"{item.name}: {self.output} can name only pictures in its folder")
        for path, folder in (
            (Path(os.path.abspath(item.path)), Path(os.path.abspath(self.output)).parent),
            (item.path.parent.resolve() / item.path.name, self.output.resolve().parent),
        ):
            if path.is_relative_to(folder):
                return readable(path.relative_to(folder).as_posix())
        raise PictureError(
            f"{item.name}: not in the folder of {self.output}, whose names are relative to it"
        )

    def lines(self, records: Sequence[Record]) -> bytes:
        return b"".join(
            json_line({"file_name": self.name(record.item), "text": record.caption.text})
            for record in records
        )

    def read_rows(self) -> Existing:
        for row in read_rows(self.rows, "file_name"):
            yield row["file_name"], None


def _csv_line(cells: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


FORMATS: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "csv": CsvTable,
    "parquet": ParquetFile,
    "parquet-parts": ParquetParts,
    "txt": TextSidecars,
    "xmp": XmpSidecars,
    "metadata": MetadataLines,
    "coco": CocoResults,
    "label-studio": LabelStudioTasks,
    "fiftyone": FiftyOneLabels,
}
_BY_SUFFIX = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".json": "coco"}


def open_format(output: Path, name: str | None = None, **options: Any) -> Format:
    """The format of an output: the one named, or the one that its suffix means.

    >>> type(open_format(Path("captions.csv"))).__name__
    'CsvTable'
    >>> type(open_format(Path("photos/metadata.jsonl"))).__name__
    'MetadataLines'
    """
    if name is None:
        name = "metadata" if output.name == "metadata.jsonl" else _BY_SUFFIX.get(output.suffix)
    if name is None:
        raise ConfigError(
            f"{output}: its suffix says no format; choose one with --format: {', '.join(FORMATS)}"
        )
    if name not in FORMATS:
        raise ConfigError(f"no format is called '{name}'; {nearest(name, list(FORMATS))}")
    kind = FORMATS[name]
    if kind.is_folder and output.is_file():
        raise ConfigError(f"{output}: is a file, and --format {name} writes into a folder")
    if not kind.is_folder and output.is_dir():
        raise ConfigError(f"{output}: is a folder, and --format {name} writes a file")
    return kind(output, format=name, **options)
