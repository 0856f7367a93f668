"""Tables with a column of paths (or addresses, or pictures): CSV, JSON lines, Parquet."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sightline.errors import DataError
from sightline.extras import require
from sightline.files import ANY_SIZE, open_regular
from sightline.parsing import json_lines, parse_json, read_csv

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
# Columns that hold pictures in the tables people have, the likeliest first.
COLUMNS = ("path", "file_name", "filepath", "file", "filename", "image", "picture", "url")

Cell = str | bytes | DataError


def read_column(table: Path, column: str | None = None) -> Iterator[tuple[int, Cell]]:
    """The number of each row, from 1, and its path, address or picture, in order.

    The column is the one named, or the first of `COLUMNS` that the table has. A row that has none
    of them comes with what is wrong with it. What is wrong with the table is raised.
    """
    suffix = table.suffix.lower()
    if suffix == ".parquet":
        rows: Iterator[Any] = _parquet(table, column)
    elif suffix == ".jsonl":
        rows = _jsonl(table, column)
    else:
        rows = _csv(table, column, "\t" if suffix == ".tsv" else ",")
    for number, value in enumerate(rows, 1):
        if isinstance(value, dict):  # an image of Hugging Face's datasets
            value = value.get("bytes") or value.get("path")
        if not isinstance(value, str | bytes | DataError) or not value:
            value = DataError(f"{table}: row {number} names no picture")
        yield number, value


def _choose(where: Path | str, names: Sequence[str], column: str | None) -> str:
    if column is not None and column in names:
        return column
    has = f"its columns are {', '.join(names) or 'none'}"
    if column is not None:
        raise DataError(f"{where}: has no column '{column}'; {has}")
    for name in COLUMNS:
        if name in names:
            return name
    raise DataError(f"{where}: which column holds the paths? Name it with --column; {has}")


def _csv(table: Path, column: str | None, delimiter: str) -> Iterator[str]:
    names, rows = read_csv(table, delimiter)
    place = names.index(_choose(table, names, column))
    for row in rows:
        yield row[place]


def _jsonl(table: Path, column: str | None) -> Iterator[Any]:
    for number, (where, line) in enumerate(json_lines(table)):
        try:
            row = parse_json(line, where, DataError)
            if not isinstance(row, dict):
                raise DataError(f"{where}: is not an object with named fields")
            yield row[_choose(where if number else table, list(row), column)]
        except DataError as error:
            if number == 0:  # the file is another one, or the column is
                raise
            yield error


def _parquet(table: Path, column: str | None) -> Iterator[Any]:
    with open_parquet(table) as file:
        name = _choose(table, file.schema_arrow.names, column)
        at_once = _at_once(file.schema_arrow.field(name).type)
        for batch in file.iter_batches(at_once, columns=[name]):
            yield from (cell.as_py() for cell in batch.column(0))  # one picture at a time


def _at_once(kind: Any) -> int:
    """How many cells of a column are read at once: few, if they may be pictures."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return 1024 if types.is_string(kind) or types.is_large_string(kind) else 16


def count_rows(table: Path) -> int:
    """How many rows a Parquet table has, which says so itself."""
    with open_parquet(table) as file:
        rows: int = file.metadata.num_rows
        return rows


@contextlib.contextmanager
def open_parquet(table: Path) -> Iterator[Any]:
    """A Parquet file; whatever is wrong with it is a `DataError`."""
    parquet = import_parquet()
    import pyarrow

    try:
        with open_regular(table, ANY_SIZE) as content, parquet.ParquetFile(content) as file:
            yield file
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{table}: cannot be read as Parquet ({reason})") from None


def import_parquet() -> Any:
    """`pyarrow.parquet`, or one line that says how to get it."""
    require("bulk", "Parquet")
    from pyarrow import parquet

    return parquet
