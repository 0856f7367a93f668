"""Where pictures come from: files, folders, patterns, lists, tables, tar shards, web addresses."""

import glob
import lzma
import os
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from sightline.bulk.items import Item, readable
from sightline.bulk.tables import SUFFIXES as TABLES
from sightline.bulk.tables import count_rows, read_column
from sightline.bulk.urls import is_url
from sightline.errors import ConfigError, DataError
from sightline.pictures import FILE_BYTES

_TAR_ERRORS = (tarfile.TarError, zlib.error, lzma.LZMAError, OverflowError)
SHARDS = (".tar", ".tar.gz", ".tgz")
# What a folder is searched for. Whether the installed Pillow reads it is seen when it is opened:
# a picture that nobody can read is counted and named, not passed over.
PICTURES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
    *(".heic", ".heif", ".avif", ".jxl", ".jp2", ".j2k", ".psd", ".tga", ".pnm", ".ppm", ".pgm"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf"),
}


@dataclass(frozen=True)
class Source:
    """Pictures in a fixed order, listed anew by each loop over it and never all in memory.

    >>> [item.name for item in Source(["examples/others/cat.jpg"])]
    ['examples/others/cat.jpg']
    """

    names: Sequence[str | Path | Item]
    column: str | None = None
    allow_urls: bool = False

    def __iter__(self) -> Iterator[Item]:
        for name in self._names():
            yield from [name] if isinstance(name, Item) else self._open(name)

    def count(self) -> int | None:
        """How many pictures these are; None if counting would mean reading them."""
        count = 0
        for name in self._names():
            if isinstance(name, Item):
                count += 1
            elif name.lower().endswith(SHARDS):
                return None
            elif name.lower().endswith(".parquet") and Path(name).is_file():
                count += count_rows(Path(name))
            else:
                count += sum(1 for _ in self._open(name))
        return count

    def check(self) -> "Source":
        """This source; a `ConfigError` if one of its names cannot be meant, before any work."""
        for name in self.names:
            if not isinstance(name, Item):
                next(self._open(_matches(str(name))[0]), None)
        return self

    def _names(self) -> Iterator[str | Item]:
        """The names, with what patterns match in their place."""
        for name in self.names:
            yield from [name] if isinstance(name, Item) else _matches(str(name))

    def _open(self, name: str) -> Iterator[Item]:
        path = Path(name)
        if is_url(name):
            yield self._of_url(name)
        elif path.is_dir():
            yield from _of_folder(path)
        elif name.lower().endswith(SHARDS):
            yield from _of_shard(path)
        elif path.suffix.lower() in TABLES:
            yield from self._of_table(path)
        else:
            yield Item.of_file(path)

    def _of_url(self, url: str) -> Item:
        if not self.allow_urls:
            raise ConfigError(f"{url}: web addresses are fetched only with --allow-urls")
        return Item(url, url.partition("://")[2].partition("?")[0], url=url)

    def _of_table(self, table: Path) -> Iterator[Item]:
        if not table.is_file():
            raise ConfigError(f"{table}: no such table")
        for number, cell in read_column(table, self.column):
            if isinstance(cell, bytes):
                inside = f"{number:08d}"
                yield Item(readable(f"{table}/{inside}"), inside, content=cell)
            elif is_url(cell):
                yield self._of_url(cell)
            else:
                # Relative to the table, as in datasets; a table of paths made elsewhere names
                # them as the shell does.
                beside = table.parent / cell
                # (os.path: no error for names that no file can have)
                path = beside if os.path.exists(beside) else Path(cell)
                inside = cell if not Path(cell).is_absolute() and ".." not in cell else path.name
                yield replace(Item.of_file(path), inside=inside)


def _matches(name: str) -> list[str]:
    """What a pattern matches; a name that is none is all that it matches."""
    if is_url(name) or not any(sign in name for sign in "*?[") or Path(name).exists():
        return [name]
    matches = sorted(glob.glob(name, recursive=True))
    if not matches:
        raise ConfigError(f"{name}: no picture matches this pattern")
    return matches


def _of_folder(folder: Path) -> Iterator[Item]:
    """The pictures in a folder and those below it, by name, one folder's names at a time."""
    empty = True
    for item in _walk(folder, folder):
        empty = False
        yield item
    if empty:
        raise ConfigError(f"{folder}: no pictures in this folder")


def _walk(folder: Path, root: Path) -> Iterator[Item]:
    with os.scandir(folder) as entries:
        ordered = sorted(
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry in entries
            if entry.is_dir(follow_symlinks=False) or _is_picture(entry.name)
        )
    for name, is_folder in ordered:
        path = folder / name
        if is_folder:
            yield from _walk(path, root)
        else:
            yield Item.of_file(path, root)


def _is_picture(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PICTURES


def _of_shard(shard: Path) -> Iterator[Item]:
    """The pictures in a tar file, in its order, as webdataset stores them.

    Of a compressed shard the bytes are taken along; of a plain one only where they are.
    """
    try:
        with tarfile.open(shard, "r|*" if shard.suffix != ".tar" else "r:") as file:
            for member in file:
                if member.size < 0 or member.offset_data < 0:
                    raise DataError(f"{shard}: cannot be read as a tar file (a negative size)")
                if member.isreg() and not member.issparse() and _is_picture(member.name):
                    name = readable(f"{shard}/{member.name}")
                    inside = readable(member.name.lstrip("/"))
                    if shard.suffix == ".tar":
                        yield Item(name, inside, shard, member.offset_data, member.size)
                    else:
                        content = file.extractfile(member)
                        assert content is not None
                        # (One that is too large is refused when it is opened.)
                        yield Item(name, inside, content=content.read(FILE_BYTES + 1))
                file.members.clear()  # type: ignore[attr-defined]  # else it keeps all of them
    except FileNotFoundError:
        raise ConfigError(f"{shard}: no such shard") from None
    # The compressions have errors of their own; a damaged header may hold any number, or none.
    except (*_TAR_ERRORS, OSError, EOFError, ValueError, MemoryError) as error:
        raise DataError(f"{shard}: cannot be read as a tar file ({error})") from None


def from_stream(stream: BinaryIO) -> list[str | Path | Item]:
    """What standard input holds: a picture, or a list of paths, one on each line.

    Paths may also be separated by zero bytes, as `find -print0` does.

    >>> import io
    >>> from_stream(io.BytesIO(b"dog.jpg\\ncat.jpg\\n"))
    ['dog.jpg', 'cat.jpg']
    """
    content = stream.read()
    separator = b"\0" if content.endswith(b"\0") else b"\n"
    lines = [line.strip(b"\r\n") for line in content.split(separator)]
    names = [os.fsdecode(line) for line in lines if line.strip()]
    if not names:
        raise ConfigError("standard input is empty: pipe a picture or a list of paths into it")
    if _looks_like_picture(content):
        return [Item("standard input", "standard-input", content=content)]
    return list(names)


def _looks_like_picture(content: bytes) -> bool:
    """Pictures start with bytes that no list of paths has, apart from zero as its separator."""
    start = content[:64]
    if start.startswith((b"GIF8", b"BM", b"RIFF", b"II*", b"MM")) and b"\0" in content[:512]:
        return True
    return any(byte < 32 and byte not in b"\0\t\r\n" for byte in start) or start[:1] > b"\x7f"


def open_source(
    source: "Source | str | Path | Item | Iterable[str | Path | Item]",
    column: str | None = None,
    allow_urls: bool = False,
) -> Source:
    """A `Source` of whatever names pictures; `-` is standard input.

    >>> len(list(open_source("examples/others")))
    9
    """
    if isinstance(source, Source):
        return source
    names = [source] if isinstance(source, str | Path | Item) else list(source)
    opened: list[str | Path | Item] = []
    for name in names:
        opened += from_stream(sys.stdin.buffer) if name == "-" else [name]
    return Source(opened, column, allow_urls).check()
