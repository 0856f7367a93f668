"""Commands killed at random moments and resumed until they end; then their bytes are compared."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from attack.law import Failure
from tiny_recipe import write_tiny_recipe

Command = Callable[[Path], list[str]]


def _train(folder: Path, *overrides: str) -> list[str]:
    recipe = folder.parent / "tiny.yaml"
    if not recipe.exists():
        write_tiny_recipe(folder.parent)
    return ["train", str(recipe), "checkpoint_every=1", *overrides, "--run", str(folder)]


def _two(folder: Path) -> list[str]:
    return _train(folder, "devices=2", "accelerator=cpu")


def _encode(folder: Path) -> list[str]:
    scenes = folder.parent / "scenes"
    if not scenes.exists():
        sizes = ["--train", "40", "--dev", "0", "--test", "0"]
        _sightline(["data", "scenes", str(scenes), *sizes]).wait()
    options = ["--size", "64", "--batch-size", "4", "--cache", str(folder)]
    return ["encode", str(scenes / "captions.jsonl"), *options]


KILLS: dict[str, Command] = {"train": _train, "train on two": _two, "encode": _encode}
_COMPARED = ("*.safetensors", "history.jsonl", "vectors.f16", "index.bin", "checkpoints.json")


def _sightline(arguments: list[str]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sightline", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def kill_until_done(name: str, folder: Path, kills: int, seed: int) -> tuple[int, list[Failure]]:
    """Kill a command so many times, over as many runs as that takes; how often, and failures.

    A run that is killed and resumed must end with the bytes of one that was not.
    """
    folder.mkdir(parents=True)
    random, done, failures, attempt = Random(seed), 0, [], 0
    whole = folder / "whole"
    began = time.monotonic()
    if (code := _sightline(KILLS[name](whole)).wait()) != 0:
        return 0, [Failure(name, f"exit code {code} without a kill")]
    seconds = time.monotonic() - began
    expected = _contents(whole)
    while done < kills:
        attempt += 1
        run = folder / f"killed-{attempt}"
        arguments = KILLS[name](run)
        while True:
            process = _sightline(arguments)
            number = random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
            try:
                process.communicate(timeout=random.uniform(0.3, 1.1) * seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                done += 1
                process.communicate()
                continue
            if process.returncode != 0:
                failures.append(Failure(f"{name} {attempt}", f"exit code {process.returncode}"))
            break
        if _contents(run) != expected:
            failures.append(Failure(f"{name} {attempt}", "other bytes than a run never killed"))
    return done, failures


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in _COMPARED
        for path in folder.rglob(pattern)
    }
