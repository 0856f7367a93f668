"""Captions as Parquet: one file, or a folder of parts that many machines fill."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from sightline.bulk.format import Existing, Format, read_rows
from sightline.bulk.items import key_of
from sightline.bulk.records import Record, Row
from sightline.bulk.tables import import_parquet, open_parquet
from sightline.errors import DataError
from sightline.files import atomic_write

_ROWS = 8192  # of a row group: a megabyte or two


class ParquetFile(Format):
    """One file, made at the end of the rows that the job wrote."""

    grows: ClassVar[bool] = False

    def __init__(self, output: Path, **options: Any) -> None:
        super().__init__(output, **options)
        import_parquet()  # its absence costs nothing yet

    def existing(self) -> Existing:
        if self.output.exists():
            yield from self._names(self.output)

    def assemble(self) -> None:
        new = {row["path"] for row in read_rows(self.rows)}
        kept = (row for row in self._earlier() if row["path"] not in new)
        with atomic_write(self.output, "wb") as file:
            self.write(file, chain(kept, read_rows(self.rows)))

    def _names(self, path: Path) -> Existing:
        names = ["path", "sha256"]
        with open_parquet(path) as file:
            if not set(names) <= set(file.schema_arrow.names):
                raise DataError(f"{path}: not a table of captions; choose another output")
            if not file.schema_arrow.equals(self.schema()):
                raise self.other_columns()
            for batch in file.iter_batches(8192, columns=names):
                columns = batch.to_pydict()
                yield from zip(*(columns[name] for name in names), strict=True)

    def _earlier(self) -> Iterator[Row]:
        if self.output.exists():
            with open_parquet(self.output) as file:
                for batch in file.iter_batches(1024):
                    yield from batch.to_pylist()

    def write(self, file: Any, rows: Iterator[Row]) -> None:
        """A whole Parquet file of rows."""
        import pyarrow

        schema = self.schema()
        with import_parquet().ParquetWriter(file, schema, compression="zstd") as writer:
            while group := list(islice(rows, _ROWS)):
                writer.write_table(pyarrow.Table.from_pylist(group, schema))

    def schema(self) -> Any:
        """The columns and their types; the same whatever the rows are."""
        import pyarrow as pa

        word = [
            pa.field("text", pa.string()),
            pa.field("log_probability", pa.float64()),
            pa.field("verdict", pa.string()),
            pa.field("support", pa.float64()),
        ]
        if self.attention:
            word.append(pa.field("attention", pa.list_(pa.float32())))
        columns = {
            "path": pa.string(),
            "sha256": pa.string(),
            "caption": pa.string(),
            "log_probability": pa.float64(),
            "words": pa.list_(pa.struct(word)),
            "unfamiliar": pa.bool_(),
        }
        if self.attention:
            columns["boxes"] = pa.list_(pa.list_(pa.float32()))
        columns |= {name: pa.list_(pa.string()) for name in self.optional}
        return pa.schema(columns | {"model": pa.string(), "version": pa.string()})


class ParquetParts(ParquetFile):
    """A folder of files, each complete when it has its name: every batch that is written is one.

    Readers of Parquet take such a folder as one table.
    """

    grows: ClassVar[bool] = False
    is_folder: ClassVar[bool] = True
    _next: int | None = None  # the number of the next part; no other job writes meanwhile

    @property
    def work(self) -> Path:
        return self.output / ".unfinished"

    def lines(self, records: Sequence[Record]) -> bytes:
        return b""  # the part is the record of what is done

    def read_rows(self) -> Existing:
        yield from ()

    def clear(self) -> None:
        for part in self.parts():
            part.unlink()
        self._next = None

    def drop_superseded(self) -> None:
        later: set[int] = set()
        for part in reversed(self.parts()):
            keys = [key_of(name) for name, _ in self._names(part)]
            kept = [key not in later for key in keys]
            later.update(keys)
            if not all(kept):
                with open_parquet(part) as file:
                    table = file.read().filter(kept)
                with atomic_write(part, "wb") as file:
                    import_parquet().write_table(table, file, compression="zstd")

    def existing(self) -> Existing:
        for part in self.parts():
            yield from self._names(part)

    def parts(self) -> list[Path]:
        return sorted(self.output.glob("part-*.parquet"))

    def publish(self, records: Sequence[Record]) -> None:
        self.publish_rows([record.row(self.attention) for record in records])

    def publish_rows(self, rows: Sequence[Row]) -> None:
        """The next part."""
        if not rows:
            return
        if self._next is None:
            parts = self.parts()
            self._next = int(parts[-1].stem.removeprefix("part-")) + 1 if parts else 0
        with atomic_write(self.output / f"part-{self._next:06d}.parquet", "wb") as file:
            self.write(file, iter(rows))
        self._next += 1

    def assemble(self) -> None:
        """Nothing is left to do."""
