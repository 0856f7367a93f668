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
from sightline.bulk.records import Failure
from sightline.bulk.tables import SUFFIXES as TABLES
from sightline.bulk.tables import count_rows, read_column
from sightline.bulk.urls import is_url
from sightline.errors import ConfigError, DataError, SightlineError
from sightline.pictures import FILE_BYTES

_NO_URLS = "{}: web addresses are fetched only with --allow-urls"
_TAR_ERRORS = (tarfile.TarError, zlib.error, lzma.LZMAError, OverflowError)
SHARDS = (".tar", ".tar.gz", ".tgz")
# What a folder is searched for. Whether the installed Pillow reads it is seen when it is opened:
# a picture that nobody can read is counted and named, not passed over.
PICTURES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
    *(".heic", ".heif", ".hif", ".avif", ".mpo", ".jps", ".apng", ".dib"),
    *(".jxl", ".jp2", ".j2k", ".jpf", ".jpx", ".jxr", ".wdp", ".avifs", ".heics", ".avci"),
    *(".psd", ".psb", ".xcf", ".kra", ".tga", ".pcx", ".dds", ".exr", ".hdr", ".sgi", ".ras"),
    *(".pnm", ".pbm", ".ppm", ".pgm", ".pam", ".pfm", ".xbm", ".xpm", ".fits", ".dcm", ".qoi"),
    *(".svg", ".svgz", ".eps", ".wmf", ".emf", ".ico", ".cur", ".icns"),
    *(".dng", ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".srf", ".sr2", ".orf", ".rw2"),
    *(".raf", ".pef", ".srw", ".x3f", ".3fr", ".iiq", ".erf", ".mrw", ".kdc", ".dcr", ".rwl"),
}


@dataclass(frozen=True)
class Source:
    """Pictures in a fixed order, listed anew by each loop over it and never all in memory.

    What names no picture, and what of a source cannot be listed any further, is a `Failure` among
    them: the rest goes on.

    >>> [item.name for item in Source(["examples/others/cat.jpg"])]
    ['examples/others/cat.jpg']
    """

    names: Sequence[str | Path | Item]
    column: str | None = None
    allow_urls: bool = False
    follow_links: bool = True  # to folders

    def __iter__(self) -> Iterator[Item | Failure]:
        for name in self._names():
            yield from [name] if isinstance(name, Item) else self._list(name)

    def count(self) -> int | None:
        """How many pictures these are; None if counting would mean reading them."""
        count = 0
        for name in self._names():
            if isinstance(name, Item):
                count += 1
            elif name.lower().endswith(SHARDS):
                return None
            elif name.lower().endswith(".parquet") and os.path.isfile(name):
                try:
                    count += count_rows(Path(name))
                except DataError:
                    count += 1  # the failure
            else:
                count += sum(1 for _ in self._list(name))
        return count

    def check(self) -> "Source":
        """This source; a `ConfigError` if one of its names cannot be meant, before any work."""
        for name in self.names:
            if not isinstance(name, Item):
                if not (matches := _matches(str(name))):
                    raise ConfigError(f"{name}: no picture matches this pattern")
                first = next(self._open(matches[0]), None)
                if isinstance(first, Failure) and is_url(first.name):
                    raise ConfigError(_NO_URLS.format(first.name))  # most likely of all others
        return self

    def _names(self) -> Iterator[str | Item]:
        """The names, with what patterns match in their place."""
        for name in self.names:
            yield from [name] if isinstance(name, Item) else _matches(str(name)) or [str(name)]

    def _list(self, name: str) -> Iterator[Item | Failure]:
        """`_open`, where an error of the source is a failure behind what it has given."""
        try:
            yield from self._open(name)
        except SightlineError as error:
            yield _failure(name, error)

    def _open(self, name: str) -> Iterator[Item | Failure]:
        path = Path(name)
        if is_url(name):
            if not self.allow_urls:
                raise ConfigError(_NO_URLS.format(name))
            yield self._of_url(name)
        elif os.path.isdir(path):
            yield from _of_folder(path, self.follow_links)
        elif name.lower().endswith(SHARDS):
            yield from _of_shard(path)
        elif path.suffix.lower() in TABLES:
            yield from self._of_table(path)
        else:
            yield Item.of_file(path)

    def _of_url(self, url: str) -> Item | Failure:
        if not self.allow_urls:
            return _failure(
                url, ConfigError(f"{_NO_URLS.format(url)}; then --retry tries it again")
            )
        return Item(url, url.partition("://")[2].partition("?")[0], url=url)

    def _of_table(self, table: Path) -> Iterator[Item | Failure]:
        if not os.path.isfile(table):
            raise ConfigError(f"{table}: no such table")
        for number, cell in read_column(table, self.column):
            if isinstance(cell, bytes):
                inside = f"{number:08d}"
                yield Item(readable(f"{table}/{inside}"), inside, content=cell)
            elif isinstance(cell, DataError):
                yield _failure(f"{table}, row {number}", cell)
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


def _failure(name: str, error: SightlineError) -> Failure:
    """A place in a source that gives no picture."""
    return Failure(readable(name), "source", str(error))


def _matches(name: str) -> list[str]:
    """What a pattern matches; a name that is none is all that it matches."""
    if is_url(name) or not any(sign in name for sign in "*?[") or os.path.exists(name):
        return [name]
    return sorted(glob.glob(name, recursive=True))


def _of_folder(folder: Path, follow_links: bool) -> Iterator[Item | Failure]:
    """The pictures in a folder and those below it, by name, one folder's names at a time."""
    empty = True
    for item in _Walk(folder, follow_links).below(folder, folder.resolve()):
        empty = False
        yield item
    if empty:
        raise ConfigError(f"{folder}: no pictures in this folder")


class _Walk:
    """A walk through a folder, and once through each one elsewhere that a link in it leads to."""

    def __init__(self, root: Path, follow_links: bool) -> None:
        self.root, self.entered = root, [root.resolve()]
        self.follow_links = follow_links

    def below(self, folder: Path, real: Path) -> Iterator[Item | Failure]:
        """What is in a folder, which links may have led to; `real` is where it is."""
        try:
            with os.scandir(folder) as entries:
                # (os.path: a link to itself is no folder, and no error)
                ordered = sorted(
                    (entry.name, os.path.isdir(entry.path), entry.is_symlink())
                    for entry in entries
                    if _is_picture(entry.name) or os.path.isdir(entry.path)
                )
        except OSError as error:
            wrong = DataError(f"{folder}: cannot be listed ({error.strerror}); check it")
            if folder == self.root:
                raise wrong from None
            yield _failure(str(folder), wrong)
            return
        for name, is_folder, is_link in ordered:
            path = folder / name
            if not is_folder:
                yield Item.of_file(path, self.root)
            elif not is_link:
                if real / name not in self.entered:  # else a link has led there
                    yield from self.below(path, real / name)
            elif self.follow_links:
                target = path.resolve()
                if not any(target.is_relative_to(known) for known in self.entered):
                    self.entered.append(target)
                    yield from self.below(path, target)


def _is_picture(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PICTURES


def _of_shard(shard: Path) -> Iterator[Item | Failure]:
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
