"""A small SQLite file that one process writes: what it has said is saved survives any crash."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sightline.errors import ConfigError, DataError
from sightline.files import BusyError, one_writer

Row = tuple[Any, ...]


class Database:
    """Tables in a file, for any number of threads; a context manager.

    Whoever opens it to write is the only one to, and has its folder locked. Everything in one
    `writing` block is on disk when the block ends, or none of it is. Others may read meanwhile.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Database(Path(folder) / "notes.sqlite", "CREATE TABLE notes (text TEXT)") as notes:
    ...         with notes.writing() as write:
    ...             _ = write("INSERT INTO notes VALUES (?)", ["kept"])
    ...         notes.rows("SELECT text FROM notes")
    [('kept',)]
    """

    version = 1  # of the tables; another one is refused

    def __init__(self, path: Path, tables: str, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._stack = contextlib.ExitStack()
        if read_only:
            if not path.is_file():
                raise DataError(f"{path}: there is no such file")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._stack.enter_context(one_writer(path.parent))
            except BusyError as error:
                raise ConfigError(
                    f"{path.parent}: is in use by {error}; stop that one first"
                ) from None
        try:
            self._open(tables, read_only)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
            raise DataError(f"{path}: cannot be read ({error}); move it away") from None
        except BaseException:
            self.close()
            raise

    def _open(self, tables: str, read_only: bool) -> None:
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._connection = sqlite3.connect(
            address, uri=True, check_same_thread=False, isolation_level=None, timeout=30
        )
        self._stack.callback(self._connection.close)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and not read_only:
            # Readers do not wait for the writer; a commit returns when it is on disk.
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(
                f"BEGIN; {tables}; PRAGMA user_version = {self.version}; COMMIT"
            )
        elif version != self.version:
            raise DataError(f"{self.path}: was not made by this version of Sightline; move it away")
        self._connection.execute("PRAGMA synchronous = FULL")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """What a query finds."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
                raise DataError(f"{self.path}: cannot be read ({error}); move it away") from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction; gives the function that executes a statement."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise DataError(f"{self.path}: cannot be written ({error})") from None
                raise

    def close(self) -> None:
        with self._lock:
            self._stack.close()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
