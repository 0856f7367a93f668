"""Processes that work for another one."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from typing import Any

_PR_SET_PDEATHSIG = 1  # as Linux numbers it


def end_with_parent(worker: int = 0) -> None:
    """Let a worker end when the process that started it does, however that is killed.

    It would otherwise stay for ever, or go on writing beside whoever resumes the work. Linux
    kills it at once, even where it waits in a library. Elsewhere a thread sees the parent end.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    _end_with(parent.pid)

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _end_with(parent: int) -> None:
    """On Linux, be killed when the process that started this one ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked
            os._exit(1)


def is_under_torchrun() -> bool:
    """Whether torchrun started this process, perhaps on one of several machines."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def end_with_torchrun() -> None:
    """Where torchrun started this process, end with it: it would not end us if it were killed."""
    if is_under_torchrun():
        _end_with(os.getppid())


class _Leash:
    """What a new process unpickles first, and is on its leash before it imports torch."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return _put_on_leash, (os.getpid(),)


def _put_on_leash(parent: int) -> _Leash:
    # Torch asks for SIGINT instead of SIGKILL, until `end_with_parent` asks again. Who was started
    # in the background ignores SIGINT, if nothing is done about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _end_with(parent)
    return _Leash()


def leash_spawned_workers() -> None:
    """Let processes that are spawned from now on end with this one from their first moment.

    `end_with_parent` comes too late for them by the seconds that their imports take.
    """
    # A process is pickled with a copy of this dictionary before the function that it is to run.
    multiprocessing.current_process()._config["leash"] = _Leash()  # type: ignore[attr-defined]
