"""A small file for each picture: a caption as plain text, or XMP that photo programs read."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from sightline.bulk.format import Format
from sightline.bulk.items import Item, key_of
from sightline.bulk.records import Record
from sightline.bulk.xmp import has_texts, read_texts, with_texts
from sightline.errors import DataError
from sightline.files import MEGABYTE, atomic_write
from sightline.parsing import parse_json

_MOST_BYTES = MEGABYTE  # read of a text that is there
# What file systems allow a name, in bytes; and the folders before it, which is less than allowed.
_LONGEST_NAME, _LONGEST_PATH = 255, 1000


class Sidecars(Format):
    """Files in a folder that is laid out like the source.

    The sidecar of `photos/a/dog.jpg`, listed from `photos`, is `OUTPUT/a/dog.txt`; with `photos`
    for the output it lies beside the picture. Where another picture of the job has that sidecar
    already, it is `dog.png.txt`. A name that no file can have is shortened, and ends in a hash.
    """

    grows: ClassVar[bool] = False
    is_folder: ClassVar[bool] = True
    suffix: ClassVar[str]

    def __init__(self, output: Path, **options: Any) -> None:
        super().__init__(output, **options)
        self._owners: dict[int, int] = {}  # sidecar -> the picture it is of

    @property
    def work(self) -> Path:
        return self.output / ".captions.unfinished"

    def path(self, item: Item) -> Path:
        """The sidecar of a picture; the same whenever pictures come in the same order."""
        folder, name = self._place(item)
        for stem in (PurePosixPath(name).stem, name):
            path = folder / _possible(stem, self.suffix)
            if self._owners.setdefault(key_of(repr(path)), item.key) == item.key:
                return path
        return folder / _possible(name, f".{item.key:016x}{self.suffix}")

    def _place(self, item: Item) -> tuple[Path, str]:
        """The folder of a picture's sidecar, and the name of the picture."""
        parts = [p for p in PurePosixPath(item.inside).parts if p not in ("/", "..", ".")]
        *folders, name = parts or [f"{item.key:016x}"]
        inside = "/".join(map(_possible, folders))
        return self.output / (inside if _size(inside) <= _LONGEST_PATH else ""), name

    def clear(self) -> None:
        """Nothing: sidecars are replaced one by one."""

    def claim(self, item: Item) -> None:
        self.path(item)

    def names_behind(self, size: int) -> Iterator[str]:
        if self.rows.exists():
            with self.rows.open("rb") as file:
                file.seek(size)
                for line in file:
                    with contextlib.suppress(DataError):  # the last one may be half there
                        row = parse_json(line, str(self.rows), DataError)
                        if isinstance(row, dict) and isinstance(row.get("path"), str):
                            yield row["path"]

    def publish(self, records: Sequence[Record]) -> None:
        for record in records:
            path = self.path(record.item)
            content = self.content(path, record.caption.text)
            with atomic_write(path, "wb") as file:
                file.write(content)

    def content(self, path: Path, text: str) -> bytes:
        raise NotImplementedError

    def texts(self, path: Path) -> list[str]:
        """The texts in a sidecar that `content` would replace; raises a `PictureError`."""
        raise NotImplementedError


class TextSidecars(Sidecars):
    """`dog.txt` with the caption in it, as trainers of image models read it."""

    suffix: ClassVar[str] = ".txt"

    def has_own(self, item: Item) -> bool:
        return self.path(item).exists() and not self.overwrite

    def content(self, path: Path, text: str) -> bytes:
        return f"{text}\n".encode()

    def texts(self, path: Path) -> list[str]:
        text = path.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace").strip()
        return [text] if text else []


class XmpSidecars(Sidecars):
    """`dog.xmp` with description and alternative text; what else is in it stays.

    A sidecar that other programs named `dog.jpg.xmp` is the one that is changed.
    """

    suffix: ClassVar[str] = ".xmp"

    def path(self, item: Item) -> Path:
        path = super().path(item)
        longer = path.with_name(_possible(self._place(item)[1], self.suffix))
        return longer if longer.exists() else path

    def has_own(self, item: Item) -> bool:
        path = self.path(item)
        return path.exists() and has_texts(path) and not self.overwrite

    def content(self, path: Path, text: str) -> bytes:
        return with_texts(path, text, overwrite=self.overwrite)

    def texts(self, path: Path) -> list[str]:
        return read_texts(path)


def _possible(name: str, ending: str = "") -> str:
    """A name that a file can have: members of shards and web addresses have any.

    >>> _possible("dog", ".txt"), len(_possible(300 * "d", ".txt"))
    ('dog.txt', 255)
    """
    name = name.replace("\0", "\\0")
    if _size(name + ending) > _LONGEST_NAME:
        ending = f".{key_of(name):016x}{ending}"
        room = _LONGEST_NAME - len(ending)
        name = name.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return name + ending


def _size(name: str) -> int:
    """In bytes; of one that is no UTF-8, too, whose bytes Python has as a character each."""
    return len(name.encode("utf-8", "replace"))
