"""Small pictures that a browser keeps, and shows again only while their file is the same.

Their addresses are numbers: another folder, or the same one when it has changed, has other pictures
under the same ones.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from fastapi import Request, Response


def unless_unchanged(request: Request, path: Path, make: Callable[[], bytes]) -> Response:
    """The JPEG that is made of a file, or word that the browser has it already."""
    headers = {"Cache-Control": "private, no-cache", "ETag": _tag(path)}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(make(), media_type="image/jpeg", headers=headers)


def _tag(path: Path) -> str:
    try:
        status = path.stat()
        content = f"{status.st_size} {status.st_mtime_ns}"
    except OSError:
        content = ""
    said = os.fsencode(path.absolute()) + content.encode()
    return f'"{hashlib.sha256(said).hexdigest()[:32]}"'
