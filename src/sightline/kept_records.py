"""Records of long work: each is on disk when it is made, and none is made twice."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.config import from_dict
from sightline.errors import ConfigError, DataError
from sightline.files import DATA_BYTES, atomic_write
from sightline.parsing import parse_json, read_text

Record = dict[str, Any]
"""What one piece of work gave, as plain JSON."""


@dataclass(frozen=True)
class _Kept:
    """A line of the file."""

    task: str
    record: dict[str, Any]
    crc32: int | None = None


def _checksum(task: str, record: Record) -> int:
    return zlib.crc32(json.dumps([task, record]).encode())


class KeptRecords:
    """A file with a line for each finished piece of work, below a line that says of what.

    `about` says what the work is done on. A file that holds the records of other work is refused. A
    last line that was cut off is taken away. Each line has a checksum, so that a record is the one
    that was made; files of before have none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "measurements.jsonl"
    >>> KeptRecords(path, {"seed": 0}).add("dog.jpg", {"words": 3})
    >>> KeptRecords(path, {"seed": 0})["dog.jpg"]
    {'words': 3}
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        header = json.dumps({"checksums": "crc32", **about})
        text = read_text(path, DATA_BYTES, DataError) if path.exists() else ""
        *whole, half = text.split("\n")
        has_checksums = not whole or whole[0].strip() == header
        if not has_checksums and whole[0].strip() != json.dumps(about):
            raise ConfigError(
                f"{path}: holds measurements of other captioners, data or options; choose another "
                "folder, or delete this file"
            )
        if not whole or half:
            with atomic_write(path) as file:
                file.writelines(f"{line}\n" for line in whole or [header])
        self._records: dict[str, Record] = {}
        for number, line in enumerate(whole[1:], 2):
            where = f"{path}, line {number}"
            content = parse_json(line, where, DataError, allow_nan=True)
            kept = from_dict(_Kept, content, where, error=DataError, joint=": ")
            if has_checksums and kept.crc32 != _checksum(kept.task, kept.record):
                raise DataError(f"{where}: is damaged; delete that line, and it is made again")
            self._records[kept.task] = kept.record

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def add(self, key: str, record: Record) -> None:
        """Keep a record under a key that is unique in this work, and the same on resuming."""
        self._records[key] = record
        with self.path.open("a", encoding="utf-8") as file:
            line = {"task": key, "record": record, "crc32": _checksum(key, record)}
            file.write(json.dumps(line) + "\n")
