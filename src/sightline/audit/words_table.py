"""Every judged word as a row of a table: CSV, and Parquet where it is installed."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sightline.bulk.tables import import_parquet
from sightline.extras import is_installed
from sightline.files import atomic_write
from sightline.kept_records import Record

COLUMNS = (
    *("system", "picture", "caption", "place", "word", "kind", "verdict", "support"),
    *("log_probability", "read_as", "instead"),
)
_ROWS = 8192  # of a row group


def word_rows(records: Sequence[Record], systems: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each content word, picture by picture."""
    for record in records:
        for caption in record["captions"]:
            for place, word in enumerate(caption["words"]):
                if word["verdict"] is not None:
                    yield {
                        **{name: word[name] for name in COLUMNS if name in word},
                        "system": systems[caption["system"]],
                        "picture": record["picture"],
                        "caption": caption["text"],
                        "place": place,
                        "word": word["text"],
                        "instead": word["instead"][0]["text"] if word["instead"] else None,
                    }


def write_words(folder: Path, records: Sequence[Record], systems: Sequence[str]) -> list[Path]:
    """`words.csv`, and `words.parquet` where the extra `bulk` is installed."""
    paths = [folder / "words.csv"]
    with atomic_write(paths[0]) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(word_rows(records, systems))
    if is_installed("bulk"):
        paths.append(folder / "words.parquet")
        _write_parquet(paths[1], word_rows(records, systems))
    return paths


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    parquet = import_parquet()
    import pyarrow as pa

    types = {"place": pa.int32(), "support": pa.float64(), "log_probability": pa.float64()}
    schema = pa.schema({name: types.get(name, pa.string()) for name in COLUMNS})
    with (
        atomic_write(path, "wb") as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        while group := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(group, schema))
