"""Regions that someone else computed: bottom-up attention features and their boxes, from files.

Two forms are in use (Anderson et al. 2018): one `.npz` per picture, and the `.tsv` of the original
release, which holds a whole split. Both give the same `PrecomputedRegions` per picture; `collate`
pads a batch of them into `Regions`.
"""

import base64
import binascii
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.errors import DataError
from sightline.files import MEGABYTE, open_regular
from sightline.progress import progress
from sightline.regions import Regions

_COLUMNS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
_FEATURE_KEYS = ("features", "x", "feat")
_BOX_KEYS = ("boxes", "bbox")


_PICTURE_BYTES = 64 * MEGABYTE  # the features of a picture have about one
_TABLE_BYTES = 1_000_000 * MEGABYTE
_HALF_PRECISION = 65_504  # the largest number that caches hold


@dataclass(frozen=True)
class PrecomputedRegions:
    """The regions of one picture: vectors `(n, D)` and boxes `(n, 4)` in picture fractions."""

    vectors: Tensor
    boxes: Tensor


def collate(pictures: Sequence[PrecomputedRegions]) -> Regions:
    """Pad pictures with different numbers of regions to one batch; the mask tells them apart.

    >>> one = PrecomputedRegions(torch.ones(1, 8), torch.zeros(1, 4))
    >>> three = PrecomputedRegions(torch.ones(3, 8), torch.zeros(3, 4))
    >>> collate([one, three]).mask.tolist()
    [[True, False, False], [True, True, True]]
    """
    widths = {picture.vectors.shape[1] for picture in pictures}
    if len(widths) > 1:
        raise DataError(
            f"pictures of one batch have features of different widths {sorted(widths)}: "
            "use the features of one detector"
        )
    lengths = torch.tensor([len(picture.vectors) for picture in pictures])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    vectors = torch.nn.utils.rnn.pad_sequence([p.vectors for p in pictures], batch_first=True)
    boxes = torch.nn.utils.rnn.pad_sequence([p.boxes for p in pictures], batch_first=True)
    return Regions(vectors, mask, boxes)


def read_npz(path: Path) -> PrecomputedRegions:
    """One picture from `.npz`: features (`features`, `x` or `feat`) and boxes (`boxes` or `bbox`).

    Boxes are `x0, y0, x1, y1`: in pixels when `image_w` and `image_h` are there, else they must
    be fractions of the picture already. Other arrays in the file, pickled ones too, stay unread.
    """
    try:
        with open_regular(path, _PICTURE_BYTES) as opened:
            arrays = _plain_arrays(opened)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: check the path") from None
    # numpy and zipfile raise many things on damaged files; whatever it is, the file is the cause.
    except Exception as error:
        reason = (str(error) or type(error).__name__).split("\n")[0][:200]
        raise DataError(f"{path} is not a readable .npz file of plain arrays ({reason})") from None
    vectors, boxes = _first(arrays, _FEATURE_KEYS, path), _first(arrays, _BOX_KEYS, path)
    if vectors.shape[::-1][:1] == boxes.shape[:1] != vectors.shape[:1]:
        vectors = vectors.T  # some releases store (D, n)
    size = None
    if "image_w" in arrays and "image_h" in arrays:
        if arrays["image_w"].size != 1 or arrays["image_h"].size != 1:
            raise DataError(f"{path}: image_w and image_h must be one number each")
        size = (_number(arrays["image_w"], path), _number(arrays["image_h"], path))
    return _checked(vectors, boxes, size, str(path))


def _plain_arrays(file: BinaryIO) -> dict[str, NDArray[np.generic]]:
    """The arrays that are read of an archive; what they unpack to is bounded before it is done."""
    known = {*_FEATURE_KEYS, *_BOX_KEYS, "image_w", "image_h"}
    with zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        arrays = {}
        for name in known & set(members):
            if members[name].file_size > _PICTURE_BYTES:
                raise ValueError(f"{name} is larger than {_PICTURE_BYTES // MEGABYTE} megabytes")
            with archive.open(members[name]) as member:
                content = member.read(_PICTURE_BYTES + 1)
            array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
            arrays[name] = array
        return arrays


def _number(array: NDArray[np.generic], path: Path) -> float:
    if array.dtype.kind not in "iuf" or not array.item() > 0:
        raise DataError(f"{path}: image_w and image_h must be numbers above 0")
    return float(array.item())


class TsvRegions:
    """The pictures of a bottom-up-attention `.tsv`, each read from its place in the file.

    Opening it reads the file once to note where each picture begins (the file is often 20 GB and
    stays on the disk); after that any picture costs one seek.

    >>> features = TsvRegions(Path("trainval_36.tsv"))  # doctest: +SKIP
    >>> features["262148"].vectors.shape  # doctest: +SKIP
    torch.Size([36, 2048])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise DataError(f"{path} is not a file: give the .tsv file of the features")
        self._offsets: dict[str, int] = {}
        offset, megabytes = 0, path.stat().st_size // 1_000_000
        with (
            open_regular(path, _TABLE_BYTES) as file,
            progress(None, f"indexing {path.name}", total=megabytes, unit="megabyte") as bar,
        ):
            while line := file.readline(_PICTURE_BYTES):
                name = line[:64].split(b"\t", 1)[0].decode(errors="replace")
                if line.strip() and name != _COLUMNS[0]:
                    self._offsets[name] = offset
                offset += len(line)
                bar.update(offset // 1_000_000 - bar.n)

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._offsets

    def __getitem__(self, image_id: str) -> PrecomputedRegions:
        if image_id not in self._offsets:
            raise DataError(f"{self.path} has no picture '{image_id}': check the image ids")
        with open_regular(self.path, _TABLE_BYTES) as file:
            file.seek(self._offsets[image_id])
            fields = file.readline(_PICTURE_BYTES).rstrip(b"\r\n").split(b"\t")
        where = f"{self.path}, picture '{image_id}'"
        if fields[0].decode(errors="replace") != image_id:
            raise DataError(f"{where}: the file has changed since it was opened; open it again")
        if len(fields) != len(_COLUMNS):
            raise DataError(f"{where}: {len(fields)} columns instead of {', '.join(_COLUMNS)}")
        try:
            width, height, count = (int(field) for field in fields[1:4])
            boxes = np.frombuffer(base64.b64decode(fields[4], validate=True), "<f4")
            vectors = np.frombuffer(base64.b64decode(fields[5], validate=True), "<f4")
            boxes, vectors = boxes.reshape(count, 4), vectors.reshape(count, -1)
        except (ValueError, binascii.Error) as error:
            raise DataError(f"{where}: damaged ({error}); copy the file again") from None
        return _checked(vectors, boxes, (width, height), where)


def _first(
    arrays: dict[str, NDArray[np.generic]], names: tuple[str, ...], path: Path
) -> NDArray[np.generic]:
    for name in names:
        if name in arrays:
            return arrays[name]
    raise DataError(
        f"{path} has none of {', '.join(names)} (it has {', '.join(arrays) or 'nothing'})"
    )


def _checked(
    vectors: NDArray[np.generic],
    boxes: NDArray[np.generic],
    size: tuple[float, float] | None,
    where: str,
) -> PrecomputedRegions:
    if any(array.dtype.kind not in "iuf" for array in (vectors, boxes)):
        raise DataError(f"{where}: features and boxes must be numbers")
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise DataError(f"{where}: features have shape {vectors.shape}, expected (n, D)")
    if boxes.shape != (len(vectors), 4):
        raise DataError(f"{where}: boxes have shape {boxes.shape}, expected ({len(vectors)}, 4)")
    fractions = torch.tensor(boxes, dtype=torch.float32)
    if size is not None:
        fractions = fractions / torch.tensor([*size, *size], dtype=torch.float32)
    # A detector's boxes may reach a pixel beyond the edge; more means other units.
    if not bool(((fractions > -0.05) & (fractions < 1.05)).all()):
        raise DataError(
            f"{where}: boxes reach beyond the picture; they must be x0, y0, x1, y1, in pixels "
            "with image_w and image_h, or as fractions"
        )
    regions = torch.tensor(vectors, dtype=torch.float32)
    if not bool((regions.abs() <= _HALF_PRECISION).all()):
        raise DataError(f"{where}: features must be finite and at most {_HALF_PRECISION}")
    return PrecomputedRegions(regions, fractions.clamp(0.0, 1.0))
