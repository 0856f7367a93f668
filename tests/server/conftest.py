"""A real server over a tiny captioner, on this machine, for as long as the tests run."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from sightline.server.app import create_app
from sightline.server.run import SECTIONS, listen
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf

Start = Callable[..., str]


@pytest.fixture(scope="session")
def start(fitted_checkpoint: Path) -> Iterator[Start]:
    """Starts servers; each is an address."""
    running = []

    def begin(*paths: Path, **fields) -> str:
        settings = Settings(port=0, **fields)
        shelf = Shelf(paths or [fitted_checkpoint], "cpu", settings.loaded)
        app = create_app(settings, SECTIONS, shelf)
        listening = listen(settings)
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield begin
    for server, thread in running:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def visit(browser) -> Iterator[Callable[..., Any]]:
    """Opens a page of a server; an error of its script, or a request elsewhere, is an error."""
    errors: list[str] = []
    contexts = []

    def open_page(address: str, width: int = 1280, height: int = 800, theme: str = "light") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(90_000)
        page.on("pageerror", lambda error: errors.append(str(error)))

        def hear(line: Any) -> None:
            # A picture that cannot be used, or is no longer kept, is an answer, and no error.
            if line.type == "error" and not re.search("status of (410|422)", line.text):
                errors.append(line.text)

        page.on("console", hear)

        def refuse(request: Any) -> None:
            if not request.url.startswith((address, "data:", f"blob:{address}")):
                errors.append(f"asked for {request.url}")

        page.on("request", refuse)
        page.goto(address)
        page.locator(".button").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture(scope="session")
def server(start: Start) -> str:
    """The address of a server that several tests ask."""
    return start()


@pytest.fixture
def ask(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def cat(examples: Path) -> bytes:
    return (examples / "cat.jpg").read_bytes()
