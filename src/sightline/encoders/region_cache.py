"""The region cache: every picture encoded once, on disk.

A cache is a folder for one encoder (network, stage, input size, preprocessing, weights: its
fingerprint) and the precision it computes in, with three files:

    encoder.json   what made it, and the shape of a row
    vectors.f16    a row of half-precision region vectors per picture, one after another
    index.bin      a record per row: the picture's content hash and the window the encoder saw

A batch is written by appending rows to `vectors.f16`, waiting until they are on the disk, and only
then appending their records to `index.bin`. Whatever moment a process is killed at, the index
names complete rows only; what lies beyond is cut off when the cache is next opened to write.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.config import Range, from_dict
from sightline.encoders.content_hashes import ContentHashes, content_hash
from sightline.encoders.encoder import Encoder
from sightline.errors import CacheError, PictureError
from sightline.files import (
    DATA_BYTES,
    BusyError,
    atomic_write,
    cache_folder,
    one_writer,
    read_bytes,
    remove_strays,
)
from sightline.parsing import read_json
from sightline.pictures import FILE_BYTES
from sightline.regions import Regions, grid_boxes

Precision = Literal[32, "bf16"]
"""What an encoder computes in while a cache is filled; rows are float16 all the same."""

Append = Callable[[Sequence[bytes], Regions, NDArray[np.float32]], None]


@dataclass(frozen=True)
class Mirrored:
    """A picture with left and right exchanged: another picture, with regions of its own."""

    picture: Path | Image


def picture_key(picture: Path | Image | Mirrored, hashes: ContentHashes | None = None) -> bytes:
    """What a picture is called in a cache: a hash of its file's bytes, or of its pixels.

    With `hashes`, a file that they know is not read again.
    """
    if isinstance(picture, Mirrored):
        return content_hash(b"mirrored" + picture_key(picture.picture, hashes))
    if isinstance(picture, Path):
        try:
            return hashes.of(picture) if hashes else content_hash(read_bytes(picture, FILE_BYTES))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = error.strerror if isinstance(error, OSError) else error
            raise PictureError(f"{picture} cannot be read: {reason}") from None
    return content_hash(f"{picture.mode} {picture.size}".encode() + picture.tobytes())


@dataclass(frozen=True)
class _Description:
    """What `encoder.json` says of the rows."""

    grid: tuple[Annotated[int, Range(0, 4096)], Annotated[int, Range(0, 4096)]]
    dim: Annotated[int, Range(1, 65_536)]
    precision: Precision = 32


class RegionCache:
    """Regions of pictures by content, for one encoder; the module's text describes the files."""

    record = np.dtype([("key", "V16"), ("window", "<f4", 4)])

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes = ContentHashes(folder.parent / "hashes.bin")
        path = folder / "encoder.json"
        if not path.exists():
            raise CacheError(f"{folder}: no region cache; create one with sightline encode")
        self.description: dict[str, Any] = read_json(path, error=CacheError)
        shape = from_dict(
            _Description,
            self.description,
            f"{path}: damaged, delete the folder",
            error=CacheError,
            strict=False,
            joint=": ",
        )
        self.grid, self.dim = shape.grid, shape.dim
        self.precision: Precision = shape.precision
        self.reload()

    @classmethod
    def for_encoder(
        cls, encoder: Encoder, root: Path | None = None, precision: Precision = 32
    ) -> "RegionCache":
        """The cache of an encoder under `root` (default: the user's cache), made where absent."""
        name = f"{encoder.name}-{encoder.stage}-{encoder.preprocessing.size}-{encoder.fingerprint}"
        name += "" if precision == 32 else f"-{precision}"
        folder = (root or cache_folder() / "regions") / name
        if not (folder / "encoder.json").exists():
            description = {"encoder": encoder.spec, "grid": encoder.grid, "dim": encoder.dim}
            description |= {} if precision == 32 else {"precision": precision}
            with _cache_errors(folder), atomic_write(folder / "encoder.json") as file:
                json.dump(description, file, indent=2)
        return cls(folder)

    def reload(self) -> None:
        """Look again at what is on disk: another process may have added rows."""
        self._records = self._complete_records()
        self._row_of = {key.tobytes(): row for row, key in enumerate(self._records["key"])}

    def _sizes(self, records: NDArray[Any]) -> dict[str, int]:
        """How many bytes of each file, the index apart, some records are of."""
        row = self.grid[0] * self.grid[1] * self.dim
        return {"vectors.f16": len(records) * row * np.dtype(np.float16).itemsize}

    def _read(self, name: str, parts: Iterable[NDArray[Any]], starts: Iterable[int]) -> None:
        """Fill arrays with parts of a file, each from the byte that it starts at.

        In a memory map all that was ever read would stay in the process's memory: after an epoch,
        the whole cache, if it fits. And pages that are not in memory yet come in more slowly.
        """
        path = self.folder / name
        try:
            with path.open("rb", 0) as file:
                for part, start in zip(parts, starts, strict=True):
                    file.seek(start)
                    if file.readinto(part.data) != part.nbytes:
                        raise CacheError(f"{path}: shorter than its index; delete {self.folder}")
        except OSError as error:
            raise CacheError(f"{path}: cannot be read ({error.strerror})") from None

    def _complete_records(self) -> NDArray[Any]:
        index = self.folder / "index.bin"
        if not index.exists():
            return np.empty(0, self.record)
        content = self._index(index)
        records = np.frombuffer(content, self.record, len(content) // self.record.itemsize)
        self._check_records(records)
        for name, size in self._sizes(records).items():
            file = self.folder / name
            if not file.exists() or file.stat().st_size < size:
                raise CacheError(f"{file}: shorter than its index; delete {self.folder}")
        return records

    def _index(self, path: Path) -> bytes:
        try:
            return read_bytes(path, DATA_BYTES)
        except OSError as error:
            raise CacheError(f"{path}: cannot be read ({error.strerror})") from None

    def _check_records(self, records: NDArray[Any]) -> None:
        """Windows are parts of pictures."""
        windows = records["window"]
        if not ((windows >= -1e-3) & (windows <= 1 + 1e-3)).all():
            raise CacheError(f"{self.folder / 'index.bin'}: damaged; delete {self.folder}")

    def _finite(self, vectors: NDArray[np.float32]) -> torch.Tensor:
        if not np.isfinite(vectors).all():
            raise CacheError(
                f"{self.folder / 'vectors.f16'}: holds numbers that are not finite; delete "
                f"{self.folder}"
            )
        return torch.from_numpy(vectors)

    def __len__(self) -> int:
        return len(self._row_of)

    def key(self, picture: Path | Image | Mirrored) -> bytes:
        """What a picture is called here; files that have not changed are not read for it."""
        return picture_key(picture, self.hashes)

    def keys(self) -> Set[bytes]:
        """The pictures that are in the cache."""
        return frozenset(self._row_of)

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Row numbers of pictures, for whoever reads the same pictures again and again."""
        if missing := sum(key not in self._row_of for key in keys):
            raise CacheError(
                f"{self.folder}: {missing} of {len(keys)} pictures are not encoded; "
                "run sightline encode on the dataset"
            )
        return np.array([self._row_of[key] for key in keys], np.int64)

    def regions(self, rows: NDArray[np.int64]) -> Regions:
        """The regions of some rows, as float32."""
        stored = np.empty((len(rows), self.grid[0] * self.grid[1], self.dim), np.float16)
        if stored.size:
            self._read("vectors.f16", stored, (int(row) * stored[0].nbytes for row in rows))
        vectors = self._finite(stored.astype(np.float32))
        boxes = grid_boxes(*self.grid, torch.from_numpy(self._records["window"][rows]))
        return Regions(vectors, vectors.new_ones(vectors.shape[:2], dtype=torch.bool), boxes)

    @contextlib.contextmanager
    def appending(self) -> Iterator[Append]:
        """A function that adds a batch: its pictures' keys, their regions and windows.

        One process at a time. When the function returns, the batch is safe on the disk.
        """
        with contextlib.ExitStack() as stack:
            with _cache_errors(self.folder):
                stack.enter_context(one_writer(self.folder))
                remove_strays(self.folder, ("encoder.json",))
                # Unbuffered, so that nothing is left to write, and to fail, when they are closed.
                self.reload()
                sizes = self._sizes(self._records)
                sizes["index.bin"] = len(self._records) * self.record.itemsize
                files = [stack.enter_context((self.folder / name).open("ab", 0)) for name in sizes]
                for file, size in zip(files, sizes.values(), strict=True):
                    file.truncate(size)

            def append(keys: Sequence[bytes], regions: Regions, windows: NDArray[Any]) -> None:
                contents, records = self._pack(keys, regions, windows)
                with _cache_errors(self.folder):
                    for file, content in zip(files, [*contents, records.tobytes()], strict=True):
                        _store(file, content)

            try:
                yield append
            finally:
                self.reload()

    def _pack(
        self, keys: Sequence[bytes], regions: Regions, windows: NDArray[Any]
    ) -> tuple[list[bytes], NDArray[Any]]:
        """What a batch adds to each file, and its records."""
        records = np.empty(len(keys), self.record)
        records["key"] = np.frombuffer(b"".join(keys), "V16")
        records["window"] = windows
        return [regions.vectors.to(torch.float16).cpu().numpy().tobytes()], records


def _store(file: FileIO, content: bytes) -> None:
    """Append to a file, and return when it is on the disk."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


@contextlib.contextmanager
def _cache_errors(folder: Path) -> Iterator[None]:
    """What the operating system says about a cache's files, as an error that names the cache."""
    try:
        yield
    except BusyError as error:
        raise CacheError(f"{folder}: {error} is writing to it; wait until it ends") from None
    except OSError as error:
        raise CacheError(f"{folder}: cannot be written ({error.strerror})") from error
