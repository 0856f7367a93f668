"""What tests do on the page for one's own pictures."""

import time
from pathlib import Path
from typing import Any


def choose(page, *files: Path) -> None:
    page.set_input_files("#files", files)


def until(page, condition: str, argument: Any = None, seconds: float = 90) -> None:
    """Wait for a condition: Playwright's own way needs `eval`, which the policy forbids."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(f"(given) => Boolean({condition})", argument):
        assert time.monotonic() < deadline, f"{condition}: {page.locator('main').inner_text()}"
        page.wait_for_timeout(50)


def finished(page) -> None:
    """Wait until all is computed."""
    until(page, "document.querySelector('#caption') && document.querySelector('#progress.idle')")
