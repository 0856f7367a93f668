"""Processes that work for another one."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1  # as Linux numbers it


def end_with_parent(worker: int = 0) -> None:
    """Let a worker end when the process that started it does, however that is killed.

    It would otherwise stay for ever, or go on writing beside whoever resumes the work. Linux
    kills it at once, even where it waits in a library. Elsewhere a thread sees the parent end.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it ended before we asked
            os._exit(1)

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
