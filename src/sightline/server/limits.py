"""How much the server takes: bytes of a request, time for it to arrive, requests at once."""

import asyncio
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.files import MEGABYTE
from sightline.server.problems import problem
from sightline.server.settings import Settings

_DRAINED = 4  # times the limit that is read and thrown away, so that a client hears the refusal


class Limits:
    """Refuses what is too large (413), too slow to arrive (408) or too much at once (503).

    Only requests with a body count: they are what is worked on.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        length = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
        if length.isdigit() and int(length) > self.settings.upload_bytes:
            await _drain(receive, _DRAINED * self.settings.upload_bytes)
            await problem(413, _too_large(self.settings))(scope, receive, send)
            return
        if self.at_work >= self.settings.queue:
            await _drain(receive, self.settings.upload_bytes)
            await problem(503, "the server is busy: try again in a moment")(scope, receive, send)
            return
        self.at_work += 1
        try:
            await self.app(scope, self._limited(receive), send)
        finally:
            self.at_work -= 1

    def _limited(self, receive: Receive) -> Receive:
        taken = 0
        arrived = False
        deadline = asyncio.get_running_loop().time() + self.settings.upload_seconds

        async def limited() -> Message:
            nonlocal taken, arrived
            if arrived:  # then it is awaited for as long as the client stays
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request took too long to arrive") from None
            taken += len(message.get("body", b""))
            arrived = not message.get("more_body", False)
            if taken > self.settings.upload_bytes:
                raise HTTPException(413, _too_large(self.settings))
            return message

        return limited


async def _drain(receive: Receive, most: int) -> None:
    """Read what a client is still sending, for a while: it listens only when it has sent all."""
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            while taken <= most:
                message = await receive()
                taken += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _too_large(settings: Settings) -> str:
    megabytes = settings.upload_bytes / MEGABYTE
    return f"the request is larger than {megabytes:g} megabytes: send a smaller picture"
