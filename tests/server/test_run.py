"""The socket that the server listens on."""

import asyncio
import socket

from sightline.server.run import listen
from sightline.server.settings import Settings


def test_answers_are_sent_without_waiting_for_acknowledgements() -> None:
    """Nagle's algorithm would hold the body of an answer back until the headers are confirmed."""
    delays: list[int] = []

    async def serve() -> None:
        listening = listen(Settings(port=0))
        met = asyncio.Event()

        def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            delays.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            met.set()

        async with await asyncio.start_server(meet, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            await met.wait()
            writer.close()

    asyncio.run(serve())
    assert delays == [1]
