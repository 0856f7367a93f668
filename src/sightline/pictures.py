"""Open a picture file: any format, mode and orientation in; upright RGB out; or one clear line."""

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from sightline.errors import PictureError

_SIXTEEN_BIT = {"I;16", "I;16L", "I;16B", "I;16N", "I"}


def open_picture(source: Path | str | bytes, reduced_to: int | None = None) -> Image.Image:
    """The picture as a person sees it: upright (EXIF), RGB, transparency on white, first frame.

    With `reduced_to`, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long as both sides
    keep at least that many pixels; other formats ignore it.

    >>> open_picture("examples/cat.jpg").mode
    'RGB'
    """
    name = "the picture" if isinstance(source, bytes) else str(source)
    if isinstance(source, bytes) and not source:
        raise PictureError(f"{name} is empty (0 bytes): send the file again")
    try:
        with warnings.catch_warnings():
            # Pillow only warns below twice its pixel limit; decoding that much is no use to us.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.simplefilter("ignore", UserWarning)
            file = io.BytesIO(source) if isinstance(source, bytes) else source
            with Image.open(file) as opened:
                return _upright_rgb(opened, reduced_to)
    except FileNotFoundError:
        raise PictureError(f"{name} does not exist: check the path") from None
    except IsADirectoryError:
        raise PictureError(f"{name} is a folder: name a picture in it") from None
    except PermissionError:
        raise PictureError(f"{name} may not be read: change its permissions") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        limit = (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise PictureError(
            f"{name} would unpack to more than {limit} million pixels: save it smaller"
        ) from None
    except UnidentifiedImageError:
        raise PictureError(f"{name} {_why_not_a_picture(source)}") from None
    # Pillow's decoders raise many things on damaged data; whatever it is, the file is the cause.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(
            f"{name} is damaged or cut short ({reason}): copy or download it again"
        ) from None


def _upright_rgb(opened: Image.Image, reduced_to: int | None) -> Image.Image:
    if reduced_to is not None and opened.format == "JPEG":
        shorter = min(opened.size)
        # draft() asks for a size and takes the smallest scale that does not fall below it.
        scale = max(1, shorter // reduced_to)
        opened.draft(None, (opened.width // scale, opened.height // scale))
    opened.load()
    upright = ImageOps.exif_transpose(opened)
    if upright.mode in _SIXTEEN_BIT:
        # Pillow clips these to 0-255 when it converts; scale 16 bits to 8 instead.
        upright = upright.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif upright.mode == "F":
        upright = _stretched(upright)
    if upright.has_transparency_data:
        upright = upright.convert("RGBA")
        white = Image.new("RGBA", upright.size, "white")
        return Image.alpha_composite(white, upright).convert("RGB")
    return upright if upright.mode == "RGB" else upright.convert("RGB")


def _stretched(picture: Image.Image) -> Image.Image:
    """Floating-point pixels have no agreed range: the lowest becomes black, the highest white."""
    values = np.nan_to_num(np.asarray(picture))
    low, high = float(values.min()), float(values.max())
    levels = (values - low) * (255 / (high - low) if high > low else 0.0)
    return Image.fromarray(levels.round().astype(np.uint8))


def _why_not_a_picture(source: Path | str | bytes) -> str:
    """What an unidentified file seems to be, and what to do."""
    if isinstance(source, bytes):
        return "is in no format that Pillow reads: convert it to JPEG or PNG"
    path = Path(source)
    with path.open("rb") as file:
        start = file.read(512)
    if not start:
        return "is empty (0 bytes): copy or download it again"
    if all(byte in b"\t\r\n\f" or 32 <= byte < 127 for byte in start):
        return f"holds text, not a picture, in spite of its name '{path.name}': name a picture"
    return "is in no format that Pillow reads (or its start is damaged): convert it to JPEG or PNG"
