"""A picture on a list of many: its name in the output, and how to get its bytes."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sightline.bulk.urls import download
from sightline.errors import PictureError
from sightline.files import ANY_SIZE, open_regular, read_bytes
from sightline.pictures import FILE_BYTES


@dataclass(frozen=True, slots=True)
class Item:
    """A picture to caption: a file, a part of a tar shard, a web address, or bytes.

    `name` is what every output calls it. It is valid text even if the file's name is not.
    `inside` is its path in the folder that it was listed from, which sidecars keep.

    >>> Item.of_file(Path("holiday/dog.jpg"), Path("holiday")).inside
    'dog.jpg'
    """

    name: str
    inside: str
    path: Path | None = None
    offset: int | None = None  # of a member in the shard `path`
    size: int = 0
    url: str | None = None
    content: bytes | None = None

    @classmethod
    def of_file(cls, path: Path, folder: Path | None = None) -> "Item":
        """The picture in a file, listed from a folder or by itself."""
        inside = path.relative_to(folder) if folder is not None else Path(path.name)
        return cls(readable(str(path)), str(inside), path)

    @property
    def key(self) -> int:
        """A number that stands for the name, in sets of millions."""
        return key_of(self.name)

    def read(self) -> bytes:
        """The content of the picture's file; raises a `PictureError`."""
        if self.content is not None:
            return self.content
        if self.url is not None:
            return download(self.url, FILE_BYTES)
        assert self.path is not None
        with _errors_of(self.name):
            if self.offset is not None:
                with open_regular(self.path, ANY_SIZE) as file:
                    file.seek(self.offset)
                    return file.read(min(self.size, FILE_BYTES + 1))  # (refused when it is opened)
            return read_bytes(self.path, FILE_BYTES)


def readable(name: str) -> str:
    """A file name as text that every format can hold: bytes that are no UTF-8 are written out.

    >>> readable("caf\\udce9.jpg")
    'caf\\\\udce9.jpg'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def key_of(name: str) -> int:
    """A 64-bit hash: two of a hundred million names share one with a chance of 1 in 4,000."""
    return int.from_bytes(
        hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise PictureError(f"{name} does not exist: check the path") from None
    except IsADirectoryError:
        raise PictureError(f"{name} is a folder: give a picture in it") from None
    except PermissionError:
        raise PictureError(f"{name} cannot be read: change its permissions") from None
    except OSError as error:
        raise PictureError(
            f"{name} cannot be read ({error.strerror}): give a picture file"
        ) from None
