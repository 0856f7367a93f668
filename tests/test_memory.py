"""Freed memory stays with a process that asks for it, and its garbage is left to the system."""

import platform
import subprocess
import sys

import pytest

# Pages that are fetched to fill 128 MB for the second time.
FILL_TWICE = """
import resource, sys, threading
import numpy as np
from sightline.memory import keep_freed_memory

if "keep" in sys.argv:
    assert keep_freed_memory()

def fill_twice():
    np.ones(1 << 24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(1 << 24)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if "thread" in sys.argv:
    thread = threading.Thread(target=fill_twice)
    thread.start()
    thread.join()
else:
    fill_twice()
"""


def pages(*arguments: str) -> int:
    command = [sys.executable, "-c", FILL_TWICE, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's memory")
@pytest.mark.parametrize("where", ["main", "thread"])
def test_memory_is_fetched_once_if_it_is_kept(where: str) -> None:
    assert 10 * pages(where, "keep") < pages(where)


# A cycle that only a look for garbage finds.
LEAVE = """
import sys
from sightline.memory import leave_garbage_at_exit

class Found:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("found")

if sys.argv[1:] == ["leave"]:
    leave_garbage_at_exit()
Found()
"""


def test_nobody_looks_for_garbage_at_the_end() -> None:
    for arguments, said in ((["leave"], ""), ([], "found\n")):
        command = [sys.executable, "-c", LEAVE, *arguments]
        assert subprocess.run(command, capture_output=True, text=True).stdout == said
