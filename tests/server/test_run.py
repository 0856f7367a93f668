"""The socket that the server listens on, and what is said to find it."""

import asyncio
import socket
from urllib.parse import parse_qs, urlsplit

import pytest

from sightline.server.run import listen, run
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf, UnknownCaptionerError


def test_the_link_holds_any_token(monkeypatch, capsys) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_: None)
    token = "abcdefgh+jklmnop/rstuv=="
    run(Settings(port=0, token=token), Shelf())
    link = capsys.readouterr().out.splitlines()[0]
    assert parse_qs(urlsplit(link).query) == {"token": [token]}


def test_an_unknown_captioner_is_said_with_a_hint() -> None:
    with pytest.raises(UnknownCaptionerError) as told:
        Shelf().find("bundle")
    assert str(told.value) == "no captioner is called 'bundle'; did you mean 'bundled'?"


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
