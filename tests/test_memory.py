"""Freed memory stays with a process that asks for it."""

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
