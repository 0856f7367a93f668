"""Commands as processes of their own that start at once: forked from one that has torch loaded.

A forked `sightline` differs from one that a shell starts only in that its imports are done, which
takes most of the time of a small command. Nothing here may compute before it forks: threads do not
survive a fork.
"""

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

HANGS_AFTER = 180  # seconds without any work done: the machine may be busy otherwise
_LOADED = ("caption", "train", "encode", "pack", "explain", "serve")


def load_commands() -> None:
    """Import what commands need, so that forked ones have it."""
    import torch

    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # of processes that these start
    for name in ("sightline.cli.main", *(f"sightline.cli.{name}" for name in _LOADED)):
        importlib.import_module(name)
    others = ("sightline.training.loop", "lightning_fabric.strategies.ddp", "sightline.server.run")
    for name in (*others, "sightline.server.opened"):
        importlib.import_module(name)


class Command:
    """A running `sightline` command. Its output goes to a file."""

    def __init__(
        self, arguments: list[str], log: Path, before: Callable[[], object] = lambda: None
    ) -> None:
        """`before` is done in the new process first, such as to limit it."""
        self.arguments, self.log = arguments, log
        self.usage: resource.struct_rusage | None = None  # once it has ended
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._become(before)

    def _become(self, before: Callable[[], object]) -> None:
        code = 70
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with the harness
            output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = (open(fd, "w", closefd=False) for fd in (1, 2))  # noqa: SIM115
            before()
            # What it spawns would first import this program as its main module, and torch with it.
            sys.modules["__main__"] = ModuleType("__main__")
            sys.argv = ["sightline", *self.arguments]
            from sightline.cli.main import main

            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def poll(self) -> int | None:
        """Its exit code, negative if a signal ended it; None: it is still running."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status, self.usage = os.waitstatus_to_exitcode(status), usage
        return self.status

    def work_done(self) -> float:
        """Processor seconds of the command and the processes it started."""
        return sum(work_of(pid) for pid in (self.pid, *descendants(self.pid)))

    def wait(self, until: float = float("inf")) -> int | None:
        """Its exit code; or None, as soon as it has done so many processor seconds of work."""
        last, moved = -1.0, time.monotonic()
        while self.poll() is None:
            work = self.work_done()
            if work >= until:
                return None
            if work > last:
                last, moved = work, time.monotonic()
            elif time.monotonic() - moved > HANGS_AFTER:
                self.kill()
                raise TimeoutError(f"sightline {' '.join(self.arguments)}: hung")
            time.sleep(0.02)
        return self.status

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, and wait for the end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        while self.poll() is None:
            time.sleep(0.02)

    @property
    def peak_memory(self) -> int:
        """The most bytes that the command held at once; it has ended."""
        assert self.usage is not None
        return self.usage.ru_maxrss * 1024

    def last_line(self) -> str:
        """The end of what it printed."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def descendants(parent: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return [pid for child in map(int, children) for pid in (child, *descendants(child))]


def is_at_work(pid: int) -> bool:
    """Whether a process is there; one that has ended, or that Python cleans up with, is not."""
    try:
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not ended and "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def work_of(pid: int) -> float:
    """The processor seconds of a process; none, if it is not there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
