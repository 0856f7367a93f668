"""Pictures inside a page, as data URIs."""

import base64
import io

from PIL.Image import Image


def jpeg_uri(picture: Image, quality: int = 85) -> str:
    """A photograph.

    >>> from PIL.Image import new
    >>> jpeg_uri(new("RGB", (2, 2)))[:27]
    'data:image/jpeg;base64,/9j/'
    """
    return _uri(picture.convert("RGB"), "jpeg", quality=quality)


def png_uri(picture: Image) -> str:
    """A picture whose every pixel counts.

    >>> from PIL.Image import new
    >>> png_uri(new("L", (2, 2)))[:26]
    'data:image/png;base64,iVBO'
    """
    return _uri(picture, "png")


def _uri(picture: Image, kind: str, **options: int) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, kind, optimize=True, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
