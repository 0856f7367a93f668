"""How far long work is: bars for whoever sits at a terminal, calls for a program that watches."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

_watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher", default=None)


def progress(
    work: Iterable[Any] | None,
    what: str,
    *,
    total: int | None,
    unit: str,
    done: int = 0,
    show: bool = True,
    delay: float = 0.0,
) -> Any:
    """A tqdm bar on standard error: live in a terminal, a line now and then in a log file.

    Nothing is shown of work that is done within `delay` seconds.

    >>> [n for n in progress(range(3), "counting", total=3, unit="number", show=False)]
    [0, 1, 2]
    """
    return tqdm(
        work,
        what,
        total,
        unit=f" {unit}s",
        initial=done,
        disable=not show,
        delay=delay,
        mininterval=0.1 if sys.stderr.isatty() else 15,
        dynamic_ncols=True,
    )


@contextmanager
def watched(watcher: Callable[[int, int], None]) -> Iterator[None]:
    """Call `watcher` with what is done, and of how much, while work goes on in this thread.

    What `watcher` raises ends the work at that point. So a program can both show long work and
    cancel it.

    >>> with watched(print):
    ...     advance(1, 12)
    1 12
    """
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def advance(done: int, total: int) -> None:
    """Tell whoever watches this thread's work how far it is; nobody need watch.

    >>> advance(1, 12)
    """
    watcher = _watcher.get()
    if watcher is not None:
        watcher(done, total)
