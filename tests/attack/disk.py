"""Disks that are full or read-only, two writers of one folder, a clock that was set back.

Whatever happens, a command says it in one line, what was there is still there, and the same command
ends, once it can, with the bytes of one that was never disturbed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from attack.commands import Command
from attack.kills import TARGETS, Workshop, contents, is_complete
from attack.law import Failure

YEAR = 365 * 24 * 3600
Trouble = Callable[["Bench", str, Path, Random], None]


class Broken(Exception):
    """The law was broken; the message says how."""


class Bench:
    """Commands, and what each of them makes when nothing disturbs it."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.folder = workshop.folder / "disturbed"
        self.folder.mkdir()
        self._whole: dict[str, dict[str, bytes]] = {}
        self._logs = 0

    def command(self, name: str, output: Path, **options: Callable[[], object]) -> Command:
        arguments = TARGETS[name].command(self.workshop, output)
        self._logs += 1  # beside the disk that is full or read-only
        return Command(arguments, self.folder / f"log-{self._logs}.txt", **options)

    def whole(self, name: str) -> dict[str, bytes]:
        if name not in self._whole:
            output = self.folder / name.replace(" ", "-") / "whole"
            output.parent.mkdir()
            self.finish(name, output)
            self._whole[name] = contents(output)
        return self._whole[name]

    def finish(self, name: str, output: Path, **options: Callable[[], object]) -> None:
        command = self.command(name, output, **options)
        if command.wait() != 0 and not is_complete(command):
            raise Broken(f"exit code {command.status}: {command.last_line()}")

    def require_whole(self, name: str, output: Path) -> None:
        if contents(output) != self.whole(name):
            raise Broken("other bytes than an undisturbed run")


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _mount(*options: str) -> None:
    subprocess.run(["mount", *options], check=True)


def can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def full_disk(bench: Bench, name: str, folder: Path, random: Random) -> None:
    """There is room for a part of the output; then there is enough."""
    needed = sum(map(len, bench.whole(name).values()))
    size = int(needed * random.uniform(0.1, 2.5))
    with small_disk(folder, max(size, 16_384)) as disk:
        command = bench.command(name, disk / "output")
        if command.wait() not in (0, 2):
            raise Broken(f"exit code {command.status} on a full disk: {command.last_line()}")
        if command.status == 2 and "space" not in (line := command.last_line()):
            raise Broken(f"a full disk is called: {line}")
        _mount("-o", "remount,size=500m", str(disk))
        bench.finish(name, disk / "output")
        bench.require_whole(name, disk / "output")


def read_only_disk(bench: Bench, name: str, folder: Path, random: Random) -> None:
    """The disk becomes read-only while a command works, or before it begins."""
    bench.whole(name)
    with small_disk(folder, 500_000_000) as disk:
        command = bench.command(name, disk / "output")
        if random.random() < 0.7:
            command.wait(until=random.uniform(0.1, 1.0))
        command.kill()
        _mount("-o", "remount,ro", str(disk))
        before = contents(disk)
        refused = bench.command(name, disk / "output")
        if refused.wait() not in (0, 2):  # 0: all was done already
            raise Broken(f"exit code {refused.status} on a read-only disk: {refused.last_line()}")
        is_told = is_complete(refused) or "ead-only" in refused.last_line()
        if refused.status == 2 and not is_told:
            raise Broken(f"a read-only disk is called: {refused.last_line()}")
        if contents(disk) != before:
            raise Broken("a read-only disk changed")
        _mount("-o", "remount,rw", str(disk))
        bench.finish(name, disk / "output")
        bench.require_whole(name, disk / "output")


def two_writers(bench: Bench, name: str, folder: Path, random: Random) -> None:
    """The same command twice at once: one does the work, the other one is told."""
    bench.whole(name)
    folder.mkdir(parents=True)
    output = folder / "output"
    first = bench.command(name, output)
    first.wait(until=random.uniform(0.0, 0.6))
    second = bench.command(name, output)
    codes = [first.wait(), second.wait()]
    if any(code not in (0, 1, 2) for code in codes):
        raise Broken(f"exit codes {codes}: {first.last_line()} {second.last_line()}")
    if codes[0] != 0 and codes[1] != 0:
        bench.finish(name, output)  # (both may be refused, if they begin in the same moment)
    bench.require_whole(name, output)


def clock_set_back(bench: Bench, name: str, folder: Path, random: Random) -> None:
    """A command is killed, and resumed a year before."""
    bench.whole(name)
    folder.mkdir(parents=True)
    output = folder / "output"
    command = bench.command(name, output)
    command.wait(until=random.uniform(0.1, 1.0))
    command.kill(signal.SIGKILL)
    for path in [output, *output.rglob("*")]:  # what it wrote is from the future now
        if path.exists():
            os.utime(path, (time.time() + YEAR, time.time() + YEAR))
    bench.finish(name, output, before=_a_year_ago)
    bench.require_whole(name, output)


def _a_year_ago() -> None:
    now = time.time
    time.time = lambda: now() - YEAR


TROUBLES: dict[str, Trouble] = {
    "full disk": full_disk,
    "read-only disk": read_only_disk,
    "two writers": two_writers,
    "clock set back": clock_set_back,
}
NAMES = ("training", "encoding", "bulk captioning")


def disturb(bench: Bench, trouble: str, cases: int, seed: int) -> tuple[int, list[Failure]]:
    """So many cases of a trouble, over all commands; what broke."""
    failures = []
    for number in range(cases):
        random, name = Random(f"{seed} {trouble} {number}"), NAMES[number % len(NAMES)]
        folder = bench.folder / f"{trouble.replace(' ', '-')}-{seed}-{number}"
        try:
            TROUBLES[trouble](bench, name, folder, random)
        except (Broken, TimeoutError) as error:
            failures.append(Failure(f"{trouble} {number} ({name})", str(error)))
        print(f"\r{trouble}: {number + 1}, {len(failures)} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return cases, failures
