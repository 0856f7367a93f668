"""Figures as files: the same figure is the same file."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format that the file's suffix names.

    >>> save_figure(draw_attention(caption), Path("attention.svg"))  # doctest: +SKIP
    """
    from matplotlib import rc_context

    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "sightline"}):
        metadata = dates.get(path.suffix, {})
        figure.savefig(buffer, format=path.suffix[1:], dpi=110, metadata=metadata)
    content = buffer.getvalue()
    with atomic_write(path, "wb") as file:
        file.write(_number_clip_paths(content) if path.suffix == ".svg" else content)


def _number_clip_paths(svg: bytes) -> bytes:
    """Name clip paths by their order.

    Matplotlib names them after the addresses of objects in memory, which differ between runs.

    >>> _number_clip_paths(b'<g clip-path="url(#p9f)"/> <clipPath id="p9f">')
    b'<g clip-path="url(#clip-1)"/> <clipPath id="clip-1">'
    """
    names = dict.fromkeys(re.findall(rb'(?:url\(#|<clipPath id=")(p[0-9a-f]+)[)"]', svg))
    numbers = {name: b"clip-%d" % number for number, name in enumerate(names, 1)}
    return re.sub(
        rb'(url\(#|<clipPath id=")(p[0-9a-f]+)(?=[)"])',
        lambda match: match[1] + numbers[match[2]],
        svg,
    )
