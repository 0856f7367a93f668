"""How the process keeps memory between one batch and the next."""

import ctypes
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
