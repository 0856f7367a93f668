"""Processes that read pictures for another one."""

import multiprocessing
import os
import threading


def end_with_parent(worker: int) -> None:
    """Let a worker end when the process that started it is killed.

    It would otherwise stay for ever, waiting to hand over its last pictures to nobody.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
