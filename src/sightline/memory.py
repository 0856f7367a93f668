"""How a program handles memory that it no longer needs."""

import atexit
import ctypes
import gc
import sys

_LARGE = 1 << 30
# As malloc.h numbers them. Memory that threads have for themselves comes in heaps of 64 MB at most:
# what is larger would be fetched and given back each time, so that all share one.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS = {_TRIM_THRESHOLD: _LARGE, _MMAP_THRESHOLD: _LARGE, _ARENA_MAX: 1}


def keep_freed_memory() -> bool:
    """Let memory that was freed stay with the process; whether that could be asked for.

    glibc gives large blocks back to the system at once, and gets them again for the next batch,
    page by page: on virtual machines, encoding may take more than twice as long for that
    (benchmarks/memory.py). It holds for the whole process: for programs to ask for, not for
    libraries. Other systems and C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(mallopt(option, value) for option, value in _SETTINGS.items())


def give_back_freed_memory() -> None:
    """Give the system what `keep_freed_memory` has kept, after something unusually large."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def leave_garbage_at_exit() -> None:
    """Do not look for garbage when the program ends: the system takes all its memory back.

    Among all that torch consists of, looking takes half a second.
    """
    atexit.register(gc.freeze)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left: Python's, or torch's of any device.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …"))
    True
    """
    if isinstance(error, MemoryError):
        return True
    says = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in says or "out of memory" in says
    )
