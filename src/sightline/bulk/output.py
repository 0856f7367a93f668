"""The output of a job: rows and failures on disk, whole batches only, and how a job goes on.

While a job runs there is a folder `OUTPUT.unfinished`:

    job.json        what the rows depend on: the captioner, its options, the format
    journal.jsonl   a line for each batch: how long rows and failures were when it was complete
    lock            one writer
    rows.jsonl      rows of a format that cannot grow

A batch is appended to the rows and to the failures, both reach the disk, then the journal gets its
line. Whatever is behind the last line of the journal is cut off by the job that goes on. So a job
that was killed makes the same batches from there as if it had not been, and the same bytes. The
first line is there before the job writes anything: without a whole line nothing was begun.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from sightline.bulk.format import Format, read_rows
from sightline.bulk.items import Item, key_of
from sightline.bulk.parquet import ParquetParts
from sightline.bulk.records import Failure, Record, Row
from sightline.bulk.sink import Sink
from sightline.errors import ConfigError, DataError
from sightline.files import ANY_SIZE, atomic_write
from sightline.parsing import parse_json, read_json

_WORK_FILES = ("job.json", "journal.jsonl", "lock", "rows.jsonl")


class Output(Sink):
    """Files that a job writes, for the time of the job; a context manager.

    `begin` says what is there already. `write` returns when a batch is on disk. `finish` makes the
    output complete. Left without `finish`, it can be taken up again.
    """

    def __init__(
        self,
        form: Format,
        failures: Path | None = None,
        *,
        skip_existing: bool = False,
        overwrite: bool = False,
        retry: bool = False,
    ) -> None:
        self.form = form
        self.failures = failures or form.output.with_name(f"{form.output.name}.failures.jsonl")
        self.skip_existing, self.overwrite, self.retry = skip_existing, overwrite, retry
        self.journal = form.work / "journal.jsonl"
        self._hashes: dict[int, int | None] = {}  # of pictures that have a row
        self._failed: set[int] = set()
        self._in_flight: set[int] = set()  # of a batch that a killed job did not complete
        self._superseded = False  # whether a picture has a row that a later one replaces

    def __enter__(self) -> "Output":
        self.form.work.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.form.work / "lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            raise ConfigError(
                f"{self.form.output}: another job is writing it; wait for it, or choose another"
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
        if not self.journal.exists():  # nothing to go on with
            for name in _WORK_FILES:
                (self.form.work / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.form.work.rmdir()

    # --- before the first batch -----------------------------------------------------------------

    def begin(self, job: dict[str, Any]) -> int:
        """Take up a job, or start it; the number of pictures that have a row or a failure."""
        job = job | self.form.settings()
        if self.overwrite and not self._continues(job):
            self._clear()
        if begun := bool(self._whole_lines()):
            self._check_job(job)
            self._cut_off()
        else:
            self._check_output()
        self._note(self.form.existing())
        if _size(self.form.rows):
            self._note(self.form.read_rows())
        if not begun:  # only now: nothing is wrong with what is there
            self._start(job)
        if not _size(self.form.rows):
            _append(self.form.rows, self.form.header())
        if self.retry:
            self.failures.unlink(missing_ok=True)
            self._commit()
        elif self.failures.exists():
            self._failed = {key_of(row["path"]) for row in read_rows(self.failures)}
        return len(self._hashes) + len(self._failed)

    def _continues(self, job: dict[str, Any]) -> bool:
        """Whether an unfinished job overwrites already: it was told so when it began."""
        return self._begun() == job | {"overwrite": True} and bool(self._whole_lines())

    def _begun(self) -> dict[str, Any]:
        """What an unfinished job was told when it began; nothing, if that cannot be read."""
        path = self.form.work / "job.json"
        if not path.exists():
            return {}
        begun = read_json(path, error=DataError)
        return begun if isinstance(begun, dict) else {}

    def _clear(self) -> None:
        """Forget an earlier job and its output."""
        for name in ("journal.jsonl", "rows.jsonl", "job.json"):
            (self.form.work / name).unlink(missing_ok=True)
        self.form.clear()
        self.failures.unlink(missing_ok=True)

    def _check_output(self) -> None:
        """Before a job starts: an output may be there only if the job was told to add to it."""
        form = self.form
        if form.output.is_file() and not (self.skip_existing or self.retry):
            raise ConfigError(
                f"{form.output}: exists already; --skip-existing adds what is new or has changed, "
                "--overwrite starts again"
            )
        if not form.grows:
            form.rows.unlink(missing_ok=True)  # of a job that was killed when it was finished

    def _start(self, job: dict[str, Any]) -> None:
        with atomic_write(self.form.work / "job.json") as file:
            json.dump(job | {"overwrite": self.overwrite}, file)
        if self.form.rows.exists():
            self._end_last_line()
        self.journal.unlink(missing_ok=True)
        self._commit()

    def _end_last_line(self) -> None:
        """Other people's files may end without a newline."""
        with self.form.rows.open("rb+") as file:
            if file.seek(0, os.SEEK_END) and not _ends_line(file):
                file.write(b"\n")

    def _check_job(self, job: dict[str, Any]) -> None:
        begun = self._begun()
        begun.pop("overwrite", None)
        for name in sorted({*begun, *job}):
            if begun.get(name) != job.get(name):
                raise ConfigError(
                    f"{self.form.output}: was begun with {name} {begun.get(name)!r}, not "
                    f"{job.get(name)!r}; go on with the same, or start again with --overwrite"
                )

    def _cut_off(self) -> None:
        """What a job that was killed wrote of its last batch."""
        lines = self._whole_lines()
        sizes = self._sizes(lines.splitlines()[-1])
        self._in_flight = {key_of(name) for name in self.form.names_behind(sizes[0])}
        for path, size in zip((self.form.rows, self.failures), sizes, strict=True):
            if _size(path) > size:
                os.truncate(path, size)
        os.truncate(self.journal, len(lines))

    def _whole_lines(self) -> bytes:
        """The journal without its last line, if that is only half there."""
        content = self.journal.read_bytes() if self.journal.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def _sizes(self, line: bytes) -> tuple[int, int]:
        """How long rows and failures were, by a line of the journal."""
        sizes = parse_json(line, str(self.journal), DataError)
        if not (
            isinstance(sizes, list)
            and len(sizes) == 2
            and all(type(size) is int and 0 <= size < ANY_SIZE for size in sizes)
        ):
            raise DataError(f"{self.journal}: is damaged; start again with --overwrite")
        return sizes[0], sizes[1]

    def _note(self, pictures: Iterator[tuple[str, str | None]]) -> None:
        for name, sha256 in pictures:
            if not isinstance(name, str) or not isinstance(sha256, str | None):
                raise DataError(
                    f"{self.form.output}: holds something else than captions in this format; "
                    "choose another output"
                )
            key = key_of(name)
            self._superseded |= key in self._hashes
            self._hashes[key] = _short(sha256)

    # --- batches --------------------------------------------------------------------------------

    def has(self, item: Item) -> bool:
        """Whether nothing is to be done for a picture, as far as its name tells.

        Raises a `PictureError` where what the picture has cannot be read.
        """
        self.form.claim(item)
        if item.key in self._failed:
            return True
        key = key_of(self.form.name(item))
        if key not in self._hashes:
            return key not in self._in_flight and self.form.has_own(item)
        return self._hashes[key] is None or not self.skip_existing

    def has_failed(self, failure: Failure) -> bool:
        return failure.key in self._failed

    def has_unchanged(self, item: Item, sha256: str) -> bool:
        """Whether a picture has a row, and the same content as then."""
        short = _short(sha256)  # None of precomputed features, which have no file
        return short is not None and self._hashes.get(key_of(self.form.name(item))) == short

    def write(self, records: Sequence[Record], failures: Sequence[Failure]) -> None:
        """A batch: on disk when this returns."""
        _append(self.form.rows, self.form.lines(records))
        self.form.publish(records)
        self._write_failures(failures)
        self._commit()
        for record in records:
            self._superseded |= key_of(self.form.name(record.item)) in self._hashes

    def write_rows(self, rows: Sequence[Row], failures: Sequence[Failure]) -> None:
        """A batch that was captioned elsewhere, as a part of its own: on disk when this returns."""
        assert isinstance(self.form, ParquetParts)
        self.form.publish_rows(rows)
        self._write_failures(failures)
        self._commit()

    def _write_failures(self, failures: Sequence[Failure]) -> None:
        if failures:
            self.failures.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(failure.row(), ensure_ascii=False) for failure in failures]
            _append(self.failures, "".join(f"{line}\n" for line in lines).encode("utf-8"))

    def _commit(self) -> None:
        sizes = [_size(path) for path in (self.form.rows, self.failures)]
        _append(self.journal, json.dumps(sizes).encode() + b"\n")

    # --- after the last batch -------------------------------------------------------------------

    def finish(self) -> None:
        """Make the output complete."""
        if self._superseded:
            self.form.drop_superseded()
        self.form.assemble()
        self.journal.unlink()


def _short(sha256: str | None) -> int | None:
    """Enough of a hash to tell two contents of one picture apart, for millions of them."""
    if sha256 is None or not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return None
    return int(sha256[:16], 16)


def _size(path: Path) -> int:
    """How long a file is; one that is not there has no bytes."""
    return path.stat().st_size if path.exists() else 0


def _ends_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    ends: bool = file.read(1) == b"\n"
    return ends


def _append(path: Path, content: bytes) -> None:
    """Add to a file, and wait until it is on disk."""
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
