"""How captions become files: what a job needs to know of a format."""

import json
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar

from sightline.bulk.items import Item, key_of
from sightline.bulk.records import Record, Row
from sightline.errors import ConfigError, DataError
from sightline.files import atomic_write
from sightline.parsing import read_json_lines

# Of each picture in an output: its name there, and the hash of its content where that is kept.
Existing = Iterator[tuple[str, str | None]]


class Format:
    """How captions become files. `output` is the file or folder that the user named.

    While a job runs, its rows are appended to `rows`, a batch at a time. That is the output itself
    where a format can grow (`grows`); other outputs are made of the rows at the end (`assemble`).
    """

    grows: ClassVar[bool] = True
    is_folder: ClassVar[bool] = False

    def __init__(
        self,
        output: Path,
        *,
        format: str,
        attention: bool = False,
        optional: Sequence[str] = (),
        overwrite: bool = False,
    ) -> None:
        self.output, self.attention, self.overwrite = output, attention, overwrite
        self.format = format  # its name
        self.optional = tuple(optional)  # columns that only some jobs have

    @property
    def work(self) -> Path:
        """The folder of an unfinished job."""
        return self.output.with_name(f"{self.output.name}.unfinished")

    def settings(self) -> dict[str, Any]:
        """What rows depend on besides the captioner: see `Job.settings`."""
        return {"format": self.format, "attention": self.attention}

    @property
    def rows(self) -> Path:
        return self.output if self.grows else self.work / "rows.jsonl"

    def name(self, item: Item) -> str:
        """What the output calls a picture."""
        return item.name

    def header(self) -> bytes:
        return b""

    def lines(self, records: Sequence[Record]) -> bytes:
        """A batch, as the rows file holds it."""
        return b"".join(json_line(record.row(self.attention)) for record in records)

    def read_rows(self) -> Existing:
        """The pictures in the rows file."""
        for row in read_rows(self.rows):
            yield row["path"], row.get("sha256")

    def drop_superseded(self) -> None:
        """Of several rows of a picture keep the last, which is of its present content."""
        if not self.grows:
            return  # (`assemble` does that)
        last: dict[int, int] = {}
        for number, (name, _) in enumerate(self.read_rows()):
            last[key_of(name)] = number
        kept = set(last.values())
        with atomic_write(self.output, "wb") as file:
            for content in self.some_rows(kept):
                file.write(content)

    def some_rows(self, numbers: Set[int]) -> Iterator[bytes]:
        """The header and the rows with these numbers, as they are in the rows file."""
        with self.rows.open("rb") as file:
            yield from (line for number, line in enumerate(file) if number in numbers)

    def names_behind(self, size: int) -> Iterator[str]:
        """Pictures in the rows file behind its first `size` bytes, as far as they are legible."""
        yield from ()

    def clear(self) -> None:
        """Delete an earlier output, so that the job starts again."""
        self.output.unlink(missing_ok=True)

    def other_columns(self) -> ConfigError:
        """What is wrong with a table that this job's rows do not fit into."""
        return ConfigError(
            f"{self.output}: has other columns than this job would write; use the options that it "
            "was made with, or choose another output"
        )

    def existing(self) -> Existing:
        """The pictures of an earlier, finished output that does not grow."""
        yield from ()

    def claim(self, item: Item) -> None:
        """Take note of a picture on the list, captioned already or not, before it is asked about.

        What the output calls a picture may depend on those before it.
        """

    def has_own(self, item: Item) -> bool:
        """Whether the picture has what this format would write, so that nothing is to be done."""
        return False

    def publish(self, records: Sequence[Record]) -> None:
        """Write what every picture gets for itself, before its row is written."""

    def assemble(self) -> None:
        """Make the output of the rows."""


def json_line(row: Row) -> bytes:
    """A row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n"


def read_rows(path: Path, name: str = "path") -> Iterator[Row]:
    """The objects of a file that a job wrote, one on each line; `name` holds the picture's."""
    for where, row in read_json_lines(path):
        if not isinstance(row, dict) or not isinstance(row.get(name), str):
            raise DataError(
                f"{where}: holds something else than captions in this format; choose another output"
            )
        yield row
