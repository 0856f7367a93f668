"""Progress bars for long work: what is done, how fast, and how much time is left."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


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
