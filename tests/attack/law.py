"""The law: whatever comes in, a reader returns or says in one line why not.

It takes at most ten seconds of the processor and 1.5 GB, and touches nothing. Readers run in a
forked worker, many to a worker; one that dies or hangs is named, and the rest go on.
"""

import contextlib
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.errors import SightlineError

SECONDS = 10  # of the processor, for one case
WALL_SECONDS = 120  # on a machine that others use, too
BYTES = 1_500_000_000
PROGRAM_BYTES = 500_000_000  # of these, what a program has that has only loaded torch


@dataclass(frozen=True)
class Case:
    """One attack: what it is called, so that it can be made again, and what it does."""

    name: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Failure:
    """A case that broke the law, and how."""

    name: str
    why: str


def judge(cases: Sequence[Case], watched: Path | None = None) -> list[Failure]:
    """Run cases one after another in a forked worker; those that broke the law.

    Nothing under `watched` may change, but for what the cases themselves replace beforehand.
    """
    failures: list[Failure] = []
    todo = list(cases)
    while todo:
        done, failed = _worker(todo, watched)
        failures += failed
        todo = todo[done:]
    return failures


def _worker(cases: Sequence[Case], watched: Path | None) -> tuple[int, list[Failure]]:
    """How many cases were run, the last of them perhaps to the worker's death."""
    # A worker has what this process has. What other tests left in it is not the readers'.
    left_over = max(_resident() - PROGRAM_BYTES, 0)
    with tempfile.TemporaryFile() as report:
        worker = os.fork()
        if worker == 0:
            os._exit(_run(cases, watched, report.fileno()))
        status, usage = _wait(worker)
        report.seek(0)
        lines = report.read().decode(errors="replace").splitlines()
    done = sum(line.startswith("done") for line in lines)
    failures = [
        Failure(name, why)
        for name, _, why in (line[5:].partition("\t") for line in lines if line[:4] == "fail")
    ]
    if done < len(cases):
        why = "hung" if status == signal.SIGKILL else f"the process ended with status {status}"
        failures.append(Failure(cases[done].name, why))
        done += 1
    elif (taken := usage.ru_maxrss * 1024 - left_over) > BYTES:
        failures.append(Failure(cases[0].name, f"or a later one took {taken / 1e9} GB"))
    return done, failures


def _resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _wait(worker: int) -> tuple[int, resource.struct_rusage]:
    """The end of a worker; one that does nothing for too long is killed."""
    last, used = time.monotonic(), 0.0
    while True:
        pid, status, usage = os.wait4(worker, os.WNOHANG)
        if pid:
            return status, usage
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            if ticks != used:
                used, last = ticks, time.monotonic()
        if time.monotonic() - last > WALL_SECONDS:
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.02)


def _run(cases: Sequence[Case], watched: Path | None, report: int) -> int:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the worker
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for case in cases:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        before = snapshot(watched) if watched else None
        if why := broken(case.run):
            os.write(report, f"fail {case.name}\t{why}\n".encode(errors="backslashreplace"))
        if watched and snapshot(watched) != before:
            os.write(report, f"fail {case.name}\tsomething in {watched} changed\n".encode())
        os.write(report, b"done\n")
    return 0


def broken(run: Callable[[], object]) -> str:
    """How a call breaks the law; empty if it keeps it."""
    try:
        run()
    except SightlineError as error:
        message = str(error)
        if "\n" in message.strip() or not message.strip() or len(message) > 1500:
            return f"not one line: {message[:200]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return ""


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file in a folder, with its size and the time it changed."""
    return {str(path): (s.st_size, s.st_mtime_ns) for path, s in _files(folder)}


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for path in sorted(folder.rglob("*")):
        yield path, path.lstat()
