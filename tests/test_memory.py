"""Freed memory stays with a process that asks for it, and its garbage is left to the system."""

import platform
import subprocess
import sys

import pytest

# Pages that are fetched to fill 64 MB for the second time.
FILL_TWICE = """
import resource, sys
import numpy as np
from sightline.memory import keep_freed_memory

if sys.argv[1:] == ["keep"]:
    assert keep_freed_memory()
np.ones(1 << 23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(*arguments: str) -> int:
    command = [sys.executable, "-c", FILL_TWICE, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's memory")
def test_memory_is_fetched_once_if_it_is_kept() -> None:
    assert 10 * pages("keep") < pages()


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
