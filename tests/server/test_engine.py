"""The queue: what goes first, and what is given up."""

import asyncio
import threading
import time

import pytest

from sightline.progress import advance
from sightline.server.engine import Engine
from sightline.server.monitor import Monitor
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def engine() -> Engine:
    return Engine(Shelf(), Settings(), Monitor())


async def test_what_nobody_waits_for_ends_at_its_next_step(engine: Engine) -> None:
    began, steps, told = threading.Event(), [], []

    def long() -> None:
        for step in range(10_000):
            steps.append(step)
            began.set()
            advance(step, 10_000)
            time.sleep(0.01)

    async with engine.running():
        waiting = asyncio.create_task(engine.alone(long, lambda done, total: told.append(done)))
        while not began.is_set() or not told:
            await asyncio.sleep(0.01)
        waiting.cancel()
        after = await engine.alone(lambda: len(steps))  # computed when the other has ended
    assert after < 10_000
    assert told == list(range(len(told)))
    assert "sightline_cancelled_total 1.0" in engine.monitor.text().decode()


async def test_the_background_comes_last(engine: Engine) -> None:
    order: list[str] = []
    held = threading.Event()

    def note(items: list[str]) -> list[None]:
        order.append("+".join(items))
        return [None] * len(items)

    async with engine.running():
        first = asyncio.create_task(engine.alone(held.wait))
        await asyncio.sleep(0.05)
        asked = [
            engine.together("thumbnail", "a", note, True),
            engine.together("thumbnail", "b", note, True),
            engine.together("caption", "c", note, False),
        ]
        waiting = asyncio.gather(*map(asyncio.create_task, asked))
        await asyncio.sleep(0.05)
        held.set()
        await asyncio.gather(first, waiting)
    assert order == ["c", "a+b"]
