"""A run that was interrupted or killed ends as if it never had been."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sightline.checkpoint import read_pointers
from sightline.recipe import load_recipe
from sightline.training.batch import CaptionBatch
from sightline.training.loop import Trainer, train
from tiny_runs import ENVIRONMENT, REGIMES, assert_same_run


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("regime", list(REGIMES))
def test_interrupted_and_resumed_equals_never_interrupted_bit_for_bit(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regime: str
) -> None:
    recipe = load_recipe(tiny_recipe, REGIMES[regime])
    whole, run = tmp_path / "whole", tmp_path / "run"
    train(recipe, whole)
    take_step = Trainer.step
    # After a mid-epoch checkpoint; after one behind an evaluation, where a stage ends; and later.
    for last in (4, 12, 16):

        def step(trainer: Trainer, batch: CaptionBatch, last: int = last) -> Any:
            if trainer.position.step > last:
                raise Interrupted
            return take_step(trainer, batch)

        monkeypatch.setattr(Trainer, "step", step)
        with pytest.raises(Interrupted):
            train(recipe, run)
        assert read_pointers(run)["last"] == f"step-{last:07d}"
    monkeypatch.setattr(Trainer, "step", take_step)
    train(recipe, run)
    assert_same_run(run, whole)


# A process that is killed as it calls a function for the n-th time.
KILLED = """
import os, pkgutil, signal, sys
from sightline.cli.main import main

place, name, calls = pkgutil.resolve_name(sys.argv.pop(1)), sys.argv.pop(1), int(sys.argv.pop(1))
function = getattr(place, name)

def call(*arguments, **options):
    global calls
    calls -= 1
    if not calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **options)

setattr(place, name, call)
main()
"""
TRAINER, STORE, CHECKPOINT = (
    "sightline.training.loop:Trainer",
    "sightline.training.store",
    "sightline.checkpoint.tensors",
)
# For each regime another moment, and the checkpoint that it goes on from.
MOMENTS = {
    "cross_entropy": (TRAINER, "step", 6, 4),
    "some captions": (TRAINER, "step", 10, 8),
    "reinforce": (CHECKPOINT, "save_file", 8, 8),  # half a checkpoint is written
    "then self_critical": (TRAINER, "step", 18, 16),
    "then lrp_inference": (TRAINER, "_next_phase", 1, 12),
    "aligned": (TRAINER, "evaluate", 1, 8),
    "then adversarial": (TRAINER, "evaluate", 2, 20),
    "then trained encoder, averaged": (CHECKPOINT, "save_file", 13, 16),
    "then trained encoder, of cuts": (STORE, "write_pointers", 7, 16),  # one has no name yet
}


@pytest.mark.process
@pytest.mark.parametrize("regime", list(REGIMES))
def test_killed_and_resumed_equals_never_killed_bit_for_bit(
    tiny_recipe: Path, tmp_path: Path, regime: str
) -> None:
    overrides = REGIMES[regime]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(load_recipe(tiny_recipe, overrides), whole)
    place, name, calls, last = MOMENTS[regime]
    command = [sys.executable, "-c", KILLED, place, name, str(calls), "train", str(tiny_recipe)]
    process = subprocess.run([*command, *overrides, "--run", str(killed)], env=ENVIRONMENT)
    assert process.returncode == -signal.SIGKILL
    assert read_pointers(killed)["last"] == f"step-{last:07d}"
    train(load_recipe(tiny_recipe, overrides), killed)
    assert_same_run(killed, whole)


def test_what_a_kill_leaves_half_written_is_never_picked_up(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    recipe, run = load_recipe(tiny_recipe, ("epochs=1", "dev.every=1")), tmp_path / "run"
    train(recipe, run)
    history, last = (run / "history.jsonl").read_bytes(), read_pointers(run)["last"]
    (run / ".step-0000099.abc").mkdir()  # killed while writing
    (run / "step-0000099").mkdir()  # killed before naming it
    with (run / "history.jsonl").open("a") as file:
        file.write('{"step": 99')
    train(recipe, run)
    assert read_pointers(run)["last"] == last
    assert (run / "history.jsonl").read_bytes() == history
