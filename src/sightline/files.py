"""Where Sightline keeps its own files, and how it writes any file: whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def cache_folder() -> Path:
    """The user's cache: `$SIGHTLINE_CACHE`, or `sightline` in `$XDG_CACHE_HOME` or `~/.cache`.

    >>> from unittest.mock import patch
    >>> with patch.dict("os.environ", SIGHTLINE_CACHE="/data/cache"):
    ...     cache_folder().as_posix()
    '/data/cache'
    """
    if chosen := os.environ.get("SIGHTLINE_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sightline"


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` that replaces it when the block ends without an error.

    The contents reach the disk before the name does, so a reader (or a machine that loses power)
    finds the old file or the new one, never half of one.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "note.txt") as file:
    ...         _ = file.write("whole")
    ...     (Path(folder) / "note.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        encoding = None if "b" in mode else "utf-8"
        with os.fdopen(descriptor, mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; give the result the permissions any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
