"""How Sightline touches the disk.

It reads regular files of a bounded size, and writes a file whole or not at all. Where a file is
read, whatever is wrong with it is an `OSError`, whose `strerror` is one clear phrase.
"""

import contextlib
import errno
import json
import os
import platform
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from sightline.errors import ConfigError

MEGABYTE = 1_000_000
CONFIG_BYTES = 8 * MEGABYTE  # a recipe, or a checkpoint's configuration with its vocabulary
DATA_BYTES = 2_000 * MEGABYTE  # COCO's largest caption or box file has 470 megabytes
ANY_SIZE = 1 << 62  # of a file that is read piece by piece


def cache_folder() -> Path:
    """The user's cache: `$SIGHTLINE_CACHE`, or `sightline` in `$XDG_CACHE_HOME` or `~/.cache`.

    >>> from unittest.mock import patch
    >>> with patch.dict("os.environ", SIGHTLINE_CACHE="/data/cache"):
    ...     cache_folder().as_posix()
    '/data/cache'
    """
    if chosen := os.environ.get("SIGHTLINE_CACHE"):
        return expand(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else expand("~/.cache")) / "sightline"


def expand(path: Path | str) -> Path:
    """A path with `~` replaced by the home folder, of which there may be none.

    >>> expand("data/captions.jsonl").as_posix()
    'data/captions.jsonl'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path}: there is no such home folder; set HOME, or SIGHTLINE_CACHE to a folder"
        ) from None


def open_regular(path: Path | str, limit: int) -> BufferedReader:
    """Open a regular file of at most `limit` bytes; an `OSError` for anything else.

    A pipe or a device might never end, or hang the program when it is opened.

    >>> open_regular("/dev/zero", MEGABYTE)
    Traceback (most recent call last):
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except ValueError:  # a NUL, or half a surrogate pair
        raise OSError(errno.EINVAL, "no file can have such a name", str(path)) from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if status.st_size > limit:
            raise _too_large(path, limit)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: Path | str, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "note.txt").write_text("whole")
    ...     read_bytes(Path(folder) / "note.txt", limit=5)
    b'whole'
    """
    with open_regular(path, limit) as file:
        content = file.read(limit + 1)  # it may have grown
    if len(content) > limit:
        raise _too_large(path, limit)
    return content


def _too_large(path: Path | str, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {limit // MEGABYTE} megabytes", str(path))


class BusyError(Exception):
    """Another process writes to the folder; the message names it."""


LOCK_FILES = ("lock", "writer.json")


@contextlib.contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Be the only process that writes to a folder; a `BusyError` names the one that does.

    The system gives the lock back however its holder ends.

    >>> with tempfile.TemporaryDirectory() as folder, one_writer(Path(folder)):
    ...     with one_writer(Path(folder)):
    ...         pass  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sightline.files.BusyError: process ... on ... (since ...)
    """
    from filelock import FileLock, Timeout  # (heavy for those who only read)

    lock, writer = (folder / name for name in LOCK_FILES)
    try:
        with FileLock(lock, timeout=0, is_singleton=False):
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            remove_strays(folder, [writer.name])
            with atomic_write(writer) as file:
                json.dump({"pid": os.getpid(), "host": platform.node(), "since": since}, file)
            try:
                yield
            finally:
                writer.unlink(missing_ok=True)
    except Timeout:
        raise BusyError(_name_of(writer)) from None


def _name_of(writer: Path) -> str:
    try:
        holder = json.loads(read_bytes(writer, CONFIG_BYTES))
        return f"process {holder['pid']} on {holder['host']} (since {holder['since']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"


def remove_strays(folder: Path, names: Iterable[str]) -> None:
    """Delete what killed writers of files in a folder left behind; nobody else may write there.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".note.txt.ab_c1234").touch()
    ...     remove_strays(Path(folder), ["note.txt"])
    ...     list(Path(folder).iterdir())
    []
    """
    for stray in strays(folder, names):
        stray.unlink()


def strays(folder: Path, names: Iterable[str]) -> list[Path]:
    """What killed writers of files in a folder left behind."""
    return [
        stray
        for name in names
        for stray in folder.glob(_before(name) + 8 * "[a-z0-9_]")
        if stray.is_file() and not stray.is_symlink()
    ]


def _before(name: str) -> str:
    """How the name of a file begins while it is written: short, for names as long as can be."""
    return f".{name[:40]}."


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
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=_before(path.name))
    try:
        # What is no UTF-8, as the names of files may be, is written out: an escape, in JSON.
        encoding, errors = (None, None) if "b" in mode else ("utf-8", "backslashreplace")
        with os.fdopen(descriptor, mode, encoding=encoding, errors=errors) as file:
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
