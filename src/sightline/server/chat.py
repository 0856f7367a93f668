"""What a chat with a captioner comes to: the pictures of the last question, and their captions."""

import asyncio
import base64
import binascii
import re
import time
from collections.abc import Sequence

from fastapi import Request
from starlette.exceptions import HTTPException

from sightline.captions import Caption
from sightline.server.api import engine_of
from sightline.server.engine import Wish
from sightline.server.presence import unless_gone

MOST_PICTURES = 8  # of one question


def picture_of_data(text: str) -> bytes:
    """The picture in a base64 string or a data URI; nothing is fetched from an address.

    >>> picture_of_data("data:image/png;base64,iVBO")[1:]
    b'PN'
    """
    if re.match(r"(?i)(https?|ftp|file):", text):
        raise HTTPException(
            400, "pictures are not fetched from addresses: send them as data:image/jpeg;base64,…"
        )
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(400, "a picture is not in base64: check how it is encoded") from None


async def answer(request: Request, model: str | None, pictures: Sequence[bytes]) -> tuple[str, str]:
    """The captioner's name, and a caption for each picture, a line each."""
    if not pictures:
        raise HTTPException(400, "there is no picture in the last question: add one")
    if len(pictures) > MOST_PICTURES:
        raise HTTPException(413, f"ask about at most {MOST_PICTURES} pictures at once")
    engine = engine_of(request)
    wish = Wish(engine.shelf.find(model))

    async def caption_all() -> list[list[Caption]]:
        return await asyncio.gather(*(engine.captions(picture, wish) for picture in pictures))

    best = [captions[0].text for captions in await unless_gone(request, caption_all())]
    return wish.captioner, "\n".join(f"{text[:1].upper()}{text[1:]}." for text in best)


def seconds() -> int:
    return int(time.time())
