"""Open a picture of any format, mode and orientation as upright RGB, or raise a clear error."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sightline.errors import DamagedPictureError, PictureError

Picture = Path | str | bytes | Image.Image | NDArray[Any]
"""A file, its bytes, an opened picture or an array `(H, W)`, `(H, W, 3)` or `(H, W, 4)`."""

# Pillow warns of pictures half as large as those it refuses. A large photograph is no mistake.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning)

# EXIF orientation -> what sets the picture upright (EXIF 2.3, table 6; 1 is upright already).
_TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION_TAG = 0x0112


def open_picture(source: Picture, reduced_to: int | None = None) -> Image.Image:
    """The picture as a person sees it: upright, RGB, transparency on white, first frame.

    An array has bytes, or, if it is grey, 16 bits a pixel.

    With `reduced_to`, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long as both sides
    keep at least that many pixels; other formats ignore it.

    >>> open_picture("examples/others/cat.jpg").size
    (451, 300)
    """
    if isinstance(source, np.ndarray):
        source = _from_array(source)
    name = str(source) if isinstance(source, Path | str) else "the picture"
    if isinstance(source, Image.Image):
        with _decoding(name):
            return _rgb(_upright(source))
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    with _decoding(name, source), Image.open(file) as opened:
        if reduced_to is not None and opened.format == "JPEG":
            opened.draft(None, (reduced_to, reduced_to))
        opened.load()
        return _rgb(_upright(opened))


@contextlib.contextmanager
def _decoding(name: str, source: Path | str | bytes = b"") -> Iterator[None]:
    """Whatever goes wrong with a picture, as one line that names it."""
    try:
        yield
    except FileNotFoundError:
        raise PictureError(f"{name} does not exist: check the path") from None
    except IsADirectoryError:
        raise PictureError(f"{name} is a folder: give a picture in it") from None
    except PermissionError:
        raise PictureError(f"{name} cannot be read: change its permissions") from None
    except Image.DecompressionBombError:
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise PictureError(
            f"{name} would unpack to more than {limit} million pixels: save it smaller"
        ) from None
    except UnidentifiedImageError:
        raise PictureError(f"{name} {_why_not_a_picture(source)}") from None
    # Pillow's decoders raise many things on damaged data; whatever it is, the file is the cause.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedPictureError(
            f"{name} is damaged or cut short ({reason}): copy or download it again"
        ) from None


def _from_array(pixels: NDArray[Any]) -> Image.Image:
    shape, grey = pixels.shape, pixels.ndim == 2
    if not (grey or (pixels.ndim == 3 and shape[2] in (1, 3, 4))) or 0 in shape:
        raise PictureError(
            f"an array of shape {shape} is not a picture: use (H, W), (H, W, 3) or (H, W, 4)"
        )
    if pixels.ndim == 3 and shape[2] == 1:
        pixels, grey = pixels[..., 0], True
    if pixels.dtype != np.uint8 and not (grey and pixels.dtype == np.uint16):
        raise PictureError(
            f"an array of {pixels.dtype} is not a picture: use bytes (uint8) from 0 to 255"
        )
    return Image.fromarray(np.ascontiguousarray(pixels))


def _upright(picture: Image.Image) -> Image.Image:
    orientation = None
    with contextlib.suppress(Exception):  # broken EXIF must not cost us a whole picture
        orientation = picture.getexif().get(_ORIENTATION_TAG)
    return picture.transpose(_TO_UPRIGHT[orientation]) if orientation in _TO_UPRIGHT else picture


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16"):
        # Pillow would clip to 0-255; the eight higher bits are the picture.
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8)).convert("RGB")
    if picture.mode in ("I", "F"):
        return _stretched(picture).convert("RGB")
    if picture.has_transparency_data:
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def _stretched(picture: Image.Image) -> Image.Image:
    """32-bit pixels have no agreed range: the lowest becomes black, the highest white."""
    values = np.nan_to_num(np.asarray(picture, np.float64), posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    levels = (values - low) * (255 / (high - low) if high > low else 0.0)
    return Image.fromarray(levels.round().astype(np.uint8))


def _why_not_a_picture(source: Path | str | bytes) -> str:
    """What an unidentified file seems to be, and what to do."""
    start = source[:512] if isinstance(source, bytes) else _first_bytes(Path(source))
    if not start:
        return "is empty (0 bytes): copy or download it again"
    if all(byte in b"\t\r\n\f" or 32 <= byte < 127 for byte in start):
        return "holds text, not a picture: name a picture"
    return "is in no format that Pillow reads, or its start is damaged: convert it to JPEG or PNG"


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(512)
