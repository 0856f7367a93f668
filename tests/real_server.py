"""A real server with given sections, and visits of a browser to it, for tests of pages."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn

from sightline.server.app import create_app
from sightline.server.run import listen
from sightline.server.sections import Section
from sightline.server.settings import Settings


@contextlib.contextmanager
def serving(sections: Sequence[Section], **settings: Any) -> Iterator[str]:
    """The address of a server for the time of the block."""
    chosen = Settings(port=0, **settings)
    listening = listen(chosen)
    app = create_app(chosen, sections)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def visiting(
    browser: Any,
    address: str,
    width: int = 1280,
    height: int = 800,
    theme: str = "light",
    expected: str = "no error at all",
) -> Iterator[Any]:
    """A page; an error of its scripts, or a request to anywhere else, fails the test.

    An error that contains `expected` is one that the test provokes.
    """
    errors: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    origin = "/".join(address.split("/")[:3])

    def check(request: Any) -> None:
        if not request.url.startswith((origin, "data:", "blob:")):
            errors.append(f"asked for {request.url}")

    page.on("request", check)
    page.goto(address)
    yield page
    context.close()
    assert not [error for error in errors if expected not in error]
