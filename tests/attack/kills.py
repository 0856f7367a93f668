"""Commands killed at random moments and resumed until they end; then their bytes are compared."""

import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attack.commands import Command, descendants, is_at_work, work_of
from attack.law import Failure
from tiny_recipe import write_tiny_recipe

PICTURES = 40


class Workshop:
    """What the killed commands work on, made once by commands that are left alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.recipe = write_tiny_recipe(folder)
        self.scenes = folder / "scenes"
        sizes = ["--train", str(PICTURES), "--dev", "0", "--test", "0"]
        self.run(["data", "scenes", str(self.scenes), *sizes])
        self.captioner = folder / "captioner"
        self.run(self.train(self.captioner, "epochs=1"))

    def run(self, arguments: list[str]) -> None:
        command = Command(arguments, self.folder / "log.txt")
        if command.wait() != 0:
            raise RuntimeError(f"sightline {arguments[0]}: {command.last_line()}")

    def train(self, output: Path, *overrides: str) -> list[str]:
        options = ["epochs=2", "checkpoint_every=1", *overrides, "--run", str(output)]
        return ["train", str(self.recipe), *options]

    def train_on_two(self, output: Path) -> list[str]:
        return self.train(output, "devices=2", "accelerator=cpu")

    def encode(self, output: Path) -> list[str]:
        options = ["--size", "64", "--batch-size", "2", "--cache", str(output)]
        return ["encode", str(self.scenes / "captions.jsonl"), *options]

    def caption(self, output: Path) -> list[str]:
        options = ["--model", str(self.captioner), "--batch-size", "2"]
        return ["caption", str(self.scenes), "-o", str(output / "captions.jsonl"), *options]


@dataclass(frozen=True)
class Target:
    """A command that is killed, and the share of all kills that it gets."""

    command: Callable[[Workshop, Path], list[str]]
    share: float


# Two processes import everything anew each time, so that a kill of them takes ten times as long.
TARGETS = {
    "training": Target(Workshop.train, 0.3),
    "training on two": Target(Workshop.train_on_two, 0.05),
    "encoding": Target(Workshop.encode, 0.25),
    "bulk captioning": Target(Workshop.caption, 0.25),
}
_COMPARED = (
    "*.safetensors", "history.jsonl", "vectors.f16", "index.bin", "checkpoints.json",
    "captions.jsonl",
)  # fmt: skip


def kill_until_done(
    workshop: Workshop, name: str, kills: int, random: Random
) -> tuple[int, list[Failure]]:
    """Kill a command so many times, over as many runs as that takes; how often, and failures.

    A run that is killed and resumed must end with the bytes of one that was not. The moment of a
    kill is a number of processor seconds, so that it does not depend on what else the machine does.
    """
    folder = workshop.folder / name.replace(" ", "-")
    folder.mkdir()
    whole = folder / "whole"
    command = Command(TARGETS[name].command(workshop, whole), folder / "whole.txt")
    seconds = _work_of(command)
    if command.status != 0:
        return 0, [Failure(name, f"exit code {command.status} without a kill")]
    expected = contents(whole)
    assert expected, f"nothing to compare in {whole}"
    done, attempt, failures = 0, 0, []
    while done < kills:
        attempt += 1
        run = folder / f"killed-{attempt}"
        log = folder / f"killed-{attempt}.txt"
        try:
            done += _run_killed(TARGETS[name].command(workshop, run), log, seconds, random)
            if (made := contents(run)) != expected:
                other = {p for p in {*made, *expected} if made.get(p) != expected.get(p)}
                why = f"other bytes than a run never killed in {', '.join(sorted(other)[:3])}"
                failures.append(Failure(f"{name} {attempt}", why))
        except (RuntimeError, TimeoutError) as error:
            failures.append(Failure(f"{name} {attempt}", str(error)))
            done += 1
        if not failures:
            shutil.rmtree(run)
        print(f"\r{name}: {done} kills, {len(failures)} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return done, failures


def _run_killed(arguments: list[str], log: Path, seconds: float, random: Random) -> int:
    """Start a command again and again, until it ends by itself; how often it was killed."""
    kills = 0
    while True:
        command = Command(arguments, log)
        code = command.wait(until=random.uniform(0, 1.2) * seconds)
        if code is None:
            workers = descendants(command.pid)
            command.kill(random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            kills += 1
            if command.status not in (-signal.SIGKILL, 143, 0):
                raise RuntimeError(f"killed, exit code {command.status}: {command.last_line()}")
            _require_ended(workers)
        elif code != 0 and not is_complete(command):
            raise RuntimeError(f"resumed, exit code {code}: {command.last_line()}")
        else:
            return kills


def is_complete(command: Command) -> bool:
    """Whether a command was refused only because all was done: it was killed as it left."""
    return command.status == 2 and "exists already" in command.last_line()


def _require_ended(workers: list[int]) -> None:
    """No worker may outlive its parent by more than a second."""
    began, before = time.monotonic(), sum(work_of(pid) for pid in workers)
    while left := [pid for pid in workers if is_at_work(pid)]:
        # A busy machine may take longer to clear away what is dead; it does not work, though.
        worked = sum(work_of(pid) for pid in left) - before
        elapsed = time.monotonic() - began
        if (worked > 1 and elapsed > 1) or elapsed > 60:
            raise RuntimeError(
                f"{len(left)} workers outlived their parent by {elapsed:.1f} s, and worked for "
                f"{worked:.1f} s of them: {_title(left[0])}"
            )
        time.sleep(0.02)


def _title(pid: int) -> str:
    """What a process was started as."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()[:100]
    return "ended"


def _work_of(command: Command) -> float:
    """The processor seconds that a command takes from its start to its end."""
    work = 0.0
    while command.poll() is None:
        work = max(work, command.work_done())
        time.sleep(0.02)
    return work


def contents(folder: Path) -> dict[str, bytes]:
    """The files that must not differ, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in _COMPARED
        for path in folder.rglob(pattern)
    }
