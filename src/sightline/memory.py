"""How a program handles memory that it no longer needs."""

import atexit
import ctypes
import gc
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_LARGE = 1 << 30


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
    return all(mallopt(option, _LARGE) for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


def give_back_freed_memory() -> None:
    """Give the system what `keep_freed_memory` has kept, after something unusually large.

    Every thread keeps its own: two that decoded a huge picture each would hold the room of both.
    """
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
