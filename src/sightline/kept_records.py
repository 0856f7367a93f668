"""Records of long work: each is on disk when it is made, and none is made twice."""

import json
from pathlib import Path
from typing import Any

from sightline.errors import ConfigError, DataError
from sightline.files import atomic_write

Record = dict[str, Any]
"""What one piece of work gave, as plain JSON."""


class KeptRecords:
    """A file with a line for each finished piece of work, below a line that says of what.

    `about` says what the work is done on. A file that holds the records of other work is refused. A
    last line that was cut off is taken away.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "measurements.jsonl"
    >>> KeptRecords(path, {"seed": 0}).add("dog.jpg", {"words": 3})
    >>> KeptRecords(path, {"seed": 0})["dog.jpg"]
    {'words': 3}
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        header = json.dumps(about)
        lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if whole and whole[0].strip() != header:
            raise ConfigError(
                f"{path}: holds measurements of other captioners, data or options; choose another "
                "folder, or delete this file"
            )
        if not whole or len(whole) < len(lines):
            with atomic_write(path) as file:
                file.writelines(whole or [header + "\n"])
        self._records: dict[str, Record] = {}
        for number, line in enumerate(whole[1:], 2):
            try:
                kept = json.loads(line)
                self._records[kept["task"]] = kept["record"]
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{path}, line {number}: is not a measurement") from None

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def add(self, key: str, record: Record) -> None:
        """Keep a record under a key that is unique in this work, and the same on resuming."""
        self._records[key] = record
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"task": key, "record": record}) + "\n")
