"""Open a picture file as upright RGB, within bounds, or raise one clear error.

A picture comes from a stranger. Only regular files of the formats below are opened, and no more
memory is taken than a budget: what a picture would unpack to is known before it is decoded.
"""

import contextlib
import ctypes
import functools
import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sightline import extras
from sightline.errors import DamagedPictureError, PictureError, PictureTooLargeError
from sightline.files import MEGABYTE, open_regular
from sightline.memory import give_back_freed_memory

Picture = Path | str | bytes | Image.Image | NDArray[Any]
"""A file, its bytes, an opened picture or an array `(H, W)`, `(H, W, 3)` or `(H, W, 4)`."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIF")
"""What is opened. Pillow knows forty more, and starts Ghostscript for one of them."""

FILE_BYTES = 256 * MEGABYTE
DECODING_BYTES = 700 * MEGABYTE  # while a picture is decoded and converted
SHOWN_PIXELS = 4_000_000  # kept of a picture that is asked for reduced

# Bytes that a pixel takes: as Pillow stores it (four, if it has more than one channel), as RGB,
# and at most in the buffers of each decoder.
_STORED = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_RGB = 4
_BUFFERS = {"WEBP": 12, "GIF": 4, "BMP": 4, "TIFF": 8, "AVIF": 12, "HEIF": 12}
_COEFFICIENT = 2  # of each channel of a JPEG in several scans, at whatever scale it is decoded
_LARGE = 64 * MEGABYTE
_one_large_picture = threading.Lock()

# Whatever a decoder has to say of a file is in the error, or is no concern of the user.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", module=r"PIL\.")

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
    keep at least that many pixels. A picture that still has more than `SHOWN_PIXELS` is averaged
    over blocks, so that many can be held at once.

    >>> open_picture("examples/others/cat.jpg").size
    (451, 300)
    """
    if isinstance(source, np.ndarray):
        source = _from_array(source)
    if isinstance(source, Image.Image):
        with _errors_of("the picture"):
            return _bounded(_upright(source, _rgb(source)), reduced_to)
    name = "the picture" if isinstance(source, bytes) else str(source)
    with _errors_of(name), _opened(source) as file:
        try:
            picture = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError:
            raise PictureError(f"{name} {_why_not_a_picture(file)}") from None
        with picture:
            return _decoded(picture, name, reduced_to)


def _opened(source: Path | str | bytes) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return open_regular(source, FILE_BYTES)


def _decoded(picture: Image.Image, name: str, reduced_to: int | None) -> Image.Image:
    pixels, channels = picture.width * picture.height, len(picture.getbands())
    buffers = pixels * _BUFFERS.get(picture.format or "", 0)
    if picture.format in ("JPEG", "MPO"):
        buffers = pixels * channels * _COEFFICIENT
        if reduced_to is not None:
            picture.draft(None, (reduced_to, reduced_to))
    decoded = picture.width * picture.height
    # The buffers are freed before the picture becomes RGB.
    cost = decoded * _STORED.get(picture.mode, 4) + max(buffers, decoded * _RGB)
    if cost > DECODING_BYTES:
        raise PictureTooLargeError(
            f"{name} would unpack to {pixels / 1e6:.0f} million pixels, which take "
            f"{cost / MEGABYTE:,.0f} megabytes to decode (at most {DECODING_BYTES // MEGABYTE}): "
            "save it smaller"
        )
    with _alone() if cost > _LARGE else contextlib.nullcontext():
        if picture.format == "TIFF":
            _silence_libtiff()
        picture.load()
        shown = _bounded(_upright(picture, _rgb(picture)), reduced_to)
        if shown.size != picture.size:
            picture.close()  # and so is what it was decoded to
        return shown


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Decode a large picture while nobody else does, and leave nothing of it behind."""
    with _one_large_picture:
        try:
            yield
        finally:
            give_back_freed_memory()


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Whatever goes wrong with a picture, as one line that names it."""
    try:
        yield
    except PictureError:
        raise
    except FileNotFoundError:
        raise missing_picture(name) from None
    except IsADirectoryError:
        raise PictureError(f"{name} is a folder: give a picture in it") from None
    except PermissionError:
        raise PictureError(f"{name} cannot be read: change its permissions") from None
    except Image.DecompressionBombError:
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise PictureTooLargeError(
            f"{name} would unpack to more than {limit} million pixels: save it smaller"
        ) from None
    except MemoryError:
        raise PictureTooLargeError(
            f"{name} needs more memory than there is: save it smaller, or close other programs"
        ) from None
    # Pillow's decoders raise many things on damaged data; whatever it is, the file is the cause.
    except Exception as error:
        if isinstance(error, OSError) and error.errno and error.strerror:
            raise PictureError(
                f"{name} cannot be read ({error.strerror}): give a picture file"
            ) from None
        reason = " ".join(str(error).split())[:200] or type(error).__name__
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


def _upright(opened: Image.Image, rgb: Image.Image) -> Image.Image:
    """The pixels of a picture, turned as its file asks."""
    orientation = None
    with contextlib.suppress(Exception):  # broken EXIF must not cost us a whole picture
        orientation = opened.getexif().get(_ORIENTATION_TAG)
    return rgb.transpose(_TO_UPRIGHT[orientation]) if orientation in _TO_UPRIGHT else rgb


def _rgb(picture: Image.Image) -> Image.Image:
    """A new RGB image, made strip by strip: what lies between the modes takes memory, too."""
    if 0 in picture.size:
        raise PictureError(
            f"a picture of {picture.width} x {picture.height} pixels has nothing to see: "
            "give one that has pixels"
        )
    if picture.mode in ("I", "F"):
        return _stretched(picture)
    if picture.mode.startswith("I;16"):
        return _by_strips(picture, _high_bytes)
    return _by_strips(picture, _on_white if picture.has_transparency_data else _converted)


def _strips(picture: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Parts of a picture of about a million pixels, from above; with the row each begins at."""
    rows = max(1, 1_000_000 // picture.width)
    for top in range(0, picture.height, rows):
        bottom = min(top + rows, picture.height)
        yield top, picture.crop((0, top, picture.width, bottom))


def _by_strips(picture: Image.Image, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    whole = Image.new("RGB", picture.size)
    for top, strip in _strips(picture):
        whole.paste(convert(strip), (0, top))
    return whole


def _converted(strip: Image.Image) -> Image.Image:
    return strip.convert("RGB")


def _high_bytes(strip: Image.Image) -> Image.Image:
    # Pillow would clip to 0-255; the eight higher bits are the picture.
    values = np.asarray(strip)
    grey = (values >> 8).astype(np.uint8)
    grey[values == strip.info.get("transparency", -1)] = 255  # on white
    return Image.fromarray(grey)


def _on_white(strip: Image.Image) -> Image.Image:
    white = Image.new("RGBA", strip.size, "white")
    return Image.alpha_composite(white, strip.convert("RGBA")).convert("RGB")


def _stretched(picture: Image.Image) -> Image.Image:
    """32-bit pixels have no agreed range: the lowest becomes black, the highest white."""
    ranges = [(v.min(), v.max()) for v in (_finite(strip) for _, strip in _strips(picture))]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    scale = 255 / (high - low) if high > low else 0.0
    return _by_strips(
        picture,
        lambda strip: Image.fromarray(((_finite(strip) - low) * scale).round().astype(np.uint8)),
    )


def _finite(strip: Image.Image) -> NDArray[np.float64]:
    return np.nan_to_num(np.asarray(strip, np.float64), posinf=0.0, neginf=0.0)


def _bounded(picture: Image.Image, reduced_to: int | None) -> Image.Image:
    """At most `SHOWN_PIXELS` of a picture, if it is asked for reduced."""
    width, height = picture.size
    if reduced_to is None or width * height <= SHOWN_PIXELS:
        return picture
    factor = max(1, min(width, height) // reduced_to)
    factors = (factor, factor)
    if width * height > SHOWN_PIXELS * factor**2:  # long and narrow
        factors = (max(1, width // reduced_to), max(1, height // reduced_to))
    return picture.reduce(factors)


def missing_picture(name: Path | str) -> PictureError:
    """What to say of a name that is no file's.

    >>> str(missing_picture(Path("https://example.org/dog.jpg")))
    'https:/example.org/dog.jpg is an address on the web: download the picture and give its file'
    """
    if re.match(r"\w+:/", str(name)):
        return PictureError(
            f"{name} is an address on the web: download the picture and give its file"
        )
    if str(name) == "-":
        return PictureError("-: standard input is not read; save the picture and give its file")
    return PictureError(f"{name} does not exist: check the path")


def _why_not_a_picture(file: BinaryIO) -> str:
    """What an unidentified file seems to be, and what to do."""
    file.seek(0)
    start = file.read(512)
    if not start:
        return "is empty (0 bytes): copy or download it again"
    if all(byte in b"\t\r\n\f" or 32 <= byte < 127 for byte in start):
        return "holds text, not a picture: name a picture"
    if _is_heic(start):
        return "is a HEIC photograph, which an optional part reads: pip install 'sightline[heic]'"
    known = ", ".join(FORMATS)
    return f"is in no format that is read here ({known}), or damaged: convert it to JPEG or PNG"


def _is_heic(start: bytes) -> bool:
    """Whether a file begins as the photographs of telephones do (ISO 23008-12, section 10)."""
    return start[4:8] == b"ftyp" and start[8:12] in (b"heic", b"heix", b"heim", b"heis", b"mif1")


def _open_heic(file: IO[bytes], name: str | bytes) -> Any:
    from pi_heif import HeifImageFile

    return HeifImageFile(file, name)


# Pillow does not read HEIC; the optional part is imported with the first such picture.
Image.register_open(
    "HEIF", _open_heic, lambda start: _is_heic(start) and extras.is_installed("heic")
)


@functools.cache
def _silence_libtiff() -> None:
    """Let libtiff not write to standard error; whatever is wrong comes back as an exception.

    Pillow leaves libtiff's own handlers in place, so they are reached through the library that
    Pillow has loaded. Where it cannot be found, libtiff goes on talking.
    """
    with contextlib.suppress(OSError, AttributeError):
        maps = Path("/proc/self/maps").read_text().splitlines()
        for library in {line.split()[-1] for line in maps if "libtiff" in line}:
            libtiff = ctypes.CDLL(library)
            libtiff.TIFFSetWarningHandler(None)
            libtiff.TIFFSetErrorHandler(None)
