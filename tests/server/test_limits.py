"""How much the server takes: bytes, time, and requests at once."""

import asyncio

import httpx
import pytest
from fastapi import APIRouter, Request

from sightline.server.app import create_app
from sightline.server.sections import Section
from sightline.server.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def client(settings: Settings, until: asyncio.Event | None = None) -> httpx.AsyncClient:
    router = APIRouter()

    @router.post("/desk/length")
    async def length(request: Request) -> int:
        body = await request.body()
        if until is not None:
            await until.wait()
        return len(body)

    app = create_app(settings, sections=[Section("/desk", "Desk", router=router)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def chunks(count: int, pause: float = 0.0):
    for _ in range(count):
        await asyncio.sleep(pause)
        yield b"x" * 100


async def test_too_large_is_413_whether_its_length_is_said_or_not() -> None:
    async with client(Settings(upload_bytes=1000)) as ask:
        assert (await ask.post("/desk/length", content=b"x" * 1000)).json() == 1000
        said = await ask.post("/desk/length", content=b"x" * 1001)
        unsaid = await ask.post("/desk/length", content=chunks(11))
        for answer in (said, unsaid):
            assert answer.status_code == 413
            assert answer.json()["title"] == "Content Too Large"


async def test_too_slow_is_408() -> None:
    async with client(Settings(upload_seconds=0.1)) as ask:
        answer = await ask.post("/desk/length", content=chunks(9, 0.05))
        assert answer.status_code == 408


async def test_too_many_at_once_are_told_to_come_again() -> None:
    until = asyncio.Event()
    async with client(Settings(queue=2), until) as ask, asyncio.TaskGroup() as group:
        working = [group.create_task(ask.post("/desk/length", content=b"x")) for _ in range(2)]
        await asyncio.sleep(0.05)
        answer = await ask.post("/desk/length", content=b"x")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await ask.get("/healthz")).status_code == 200  # what asks nothing is answered
        until.set()
        assert [(await one).status_code for one in working] == [200, 200]
        assert (await ask.post("/desk/length", content=b"x")).status_code == 200
