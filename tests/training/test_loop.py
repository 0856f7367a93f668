"""The loop: resume after a kill, several processes, early stopping, errors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file

import sightline
from attack.commands import descendants, is_at_work
from sightline.checkpoint import read_pointers, write_pointers
from sightline.errors import ConfigError, DataError, TrainingError
from sightline.recipe import load_recipe
from sightline.training.batch import CaptionBatch
from sightline.training.loop import Trainer, train
from sightline.training.run import claim_run

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(recipe: Path, run: Path, *overrides: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "sightline", "train", str(recipe), *overrides]
    return subprocess.Popen([*command, "--run", str(run)], env=ENVIRONMENT, stderr=subprocess.PIPE)


REGIMES = {
    "cross_entropy": (),
    "some captions": ("batch.captions=2", "batch.sort=true"),
    "reinforce": ("model.name=hard_attention", "objective={name: variational}"),
    "then self_critical": (
        "epochs=2",
        "then=[{objective: {name: self_critical, samples: 2, max_length: 8}, epochs: 2}]",
    ),
    "then lrp_inference": ("epochs=2", "then=[{objective: {name: lrp_inference}, steps: 12}]"),
    "aligned": (
        "model={name: aligned_transformer, width: 16, heads: 2, encoder_layers: 1, "
        "decoder_layers: 1, feed_forward: 16, alignment: {fusion: decay}}",
        "objective={name: aligned}",
    ),
    "then adversarial": (
        "model={name: hierarchical, region_width: 8, word_width: 8, worker_width: 8, "
        "manager_width: 8, attention_width: 8, discriminator_width: 8, dropout: 0.2}",
        "objective={name: discriminated}",
        "epochs=2",
        "then=[{objective: {name: adversarial, rollouts: 1}, epochs: 2}]",
    ),
    "then trained encoder, averaged": (
        "epochs=2",
        "optimizer.average=0.9",
        "then=[{objective: {name: cross_entropy}, epochs: 2, encoder: {train_from: stage4}}]",
    ),
    "then trained encoder, of cuts": (
        "epochs=2",
        "data.mirror=true",
        "then=[{objective: {name: cross_entropy}, epochs: 2, "
        "encoder: {train_from: stage4, random_cut: 0.5}}]",
    ),
}


def assert_same_run(run: Path, whole: Path) -> None:
    pointers = read_pointers(whole)
    assert read_pointers(run) == pointers
    for name in set(pointers.values()):
        files = sorted(path.name for path in (whole / name).glob("*.safetensors"))
        assert files[-2:] == ["model.safetensors", "training.safetensors"]
        for file in files:
            assert (run / name / file).read_bytes() == (whole / name / file).read_bytes()
    assert (run / "history.jsonl").read_bytes() == (whole / "history.jsonl").read_bytes()
    assert len((whole / "history.jsonl").read_text().splitlines()) == 24 // 3 + 2


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


TWO_PROCESSES = """
import sys
import time
from pathlib import Path
import torch
from lightning_fabric import Fabric
from safetensors.torch import save_file
from sightline.training.batch import CaptionBatch
from sightline.training.loop import Trainer
from sightline.recipe import load_recipe

def gradients(fabric, recipe, folder):
    trainer = Trainer(fabric, load_recipe(recipe), folder, False)
    trainer.resume()
    for number, batch in enumerate(trainer.batches.epoch(0)):
        values, captions = trainer.backward(batch)
        if fabric.is_global_zero:
            found = {n: p.grad for n, p in trainer.captioner.named_parameters()}
            if trainer.trainable is not None:
                found |= {n: p.grad for n, p in trainer.trainable.named_parameters()}
            found["nll"] = torch.tensor(values["nll"])
            save_file(found, folder / f"{number}.safetensors")
        trainer.optimizer.zero_grad()

if __name__ == "__main__":
    devices, recipe, folder = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir()
    strategy = "ddp_spawn" if devices > 1 else "auto"
    fabric = Fabric(accelerator="cpu", devices=devices, strategy=strategy)
    fabric.launch(gradients, recipe, folder)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("by", "train_from", "random_cut"),
    [
        ("image", "stage4", 0.5),
        ("length", "null", 1.0),
        ("image\n  captions: 2\n  sort: true", "null", 1.0),
    ],
)
def test_two_processes_give_the_gradients_of_one(
    tiny_recipe: Path, tmp_path: Path, by: str, train_from: str, random_cut: float
) -> None:
    # With batches of three, the last one of a length leaves the second process with nothing.
    text = tiny_recipe.read_text().replace("dropout: 0.2", "dropout: 0.0")
    text = text.replace("by: image", f"by: {by}").replace("size: 4", "size: 3")
    encoder = f"stage: stage4\n  train_from: {train_from}\n  random_cut: {random_cut}"
    text = text.replace("stage: stage4", encoder)
    tiny_recipe.write_text(text)
    script = tmp_path / "gradients.py"
    script.write_text(TWO_PROCESSES)
    for devices in (1, 2):
        arguments = [str(devices), str(tiny_recipe), str(tmp_path / str(devices))]
        subprocess.run([sys.executable, str(script), *arguments], check=True, env=ENVIRONMENT)
    files = sorted(path.name for path in (tmp_path / "1").glob("*.safetensors"))
    assert len(files) >= 8
    for name in files:
        one, two = load_file(tmp_path / "1" / name), load_file(tmp_path / "2" / name)
        for parameter, gradient in one.items():
            torch.testing.assert_close(two[parameter], gradient, rtol=0, atol=1e-6)


@pytest.mark.process
@pytest.mark.parametrize(
    "regime", ["then self_critical", "then adversarial", "cross_entropy without masks"]
)
def test_two_processes_train(tiny_recipe: Path, tmp_path: Path, regime: str) -> None:
    sizes = "width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 16"
    regimes = {
        **REGIMES,
        "cross_entropy without masks": (
            f"model={{name: aligned_transformer, {sizes}}}",
            "objective={name: cross_entropy}",
        ),
    }
    run = tmp_path / "run"
    process = start(tiny_recipe, run, "devices=2", "accelerator=cpu", *regimes[regime])
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()
    records = [json.loads(line) for line in (run / "history.jsonl").open()]
    assert records[-1]["step"] == 24
    assert 0 <= records[-1]["dev"]["BLEU-4"] <= 1
    losses = [record["nll"] for record in records if "nll" in record]
    assert losses[-1] < losses[0]


def make_trainer(recipe: Path, run: Path, *overrides: str) -> Trainer:
    run.mkdir()
    fabric = Fabric(accelerator="cpu", devices=1)
    trainer = Trainer(fabric, load_recipe(recipe, overrides), run, False)
    trainer.resume()
    return trainer


def test_training_stops_when_dev_does_not_get_better_and_keeps_the_best(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(
        tiny_recipe, tmp_path / "run", "epochs=9", "dev.every=1", "dev.patience=2"
    )
    scores = iter([0.1, 0.5, 0.4, 0.5, 0.9])
    monkeypatch.setattr(trainer, "_score", lambda captions: {"BLEU-4": next(scores)})
    trainer.train()
    steps = len(trainer.batches)
    assert trainer.position.epoch == 4
    assert trainer.position.captions == 4 * 24 * 5
    assert read_pointers(trainer.run) == {
        "best": f"step-{2 * steps:07d}",
        "last": f"step-{4 * steps:07d}",
        "stage-1": f"step-{2 * steps:07d}",
    }
    folders = {path.name for path in trainer.run.glob("step-*")}
    assert folders == set(read_pointers(trainer.run).values())


def test_a_stage_starts_from_the_best_weights_with_everything_else_its_own(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = "{objective: {name: self_critical, samples: 2}, epochs: 3, optimizer: {clip: 1.0}, "
    stage += "schedule: {name: constant, warmup: 0}, batch: {size: 12}, dev: {metric: BLEU-4}}"
    trainer = make_trainer(
        tiny_recipe, tmp_path / "run", "epochs=3", "dev.every=1", f"then=[{stage}]"
    )
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.6])
    monkeypatch.setattr(trainer, "_score", lambda captions: {"BLEU-4": next(scores)})
    seen: dict[str, torch.Tensor] = {}
    next_stage = trainer._next_phase

    def spy() -> None:
        seen["last"] = trainer.captioner.output.weight.detach().clone()
        seen["best"] = load_file(trainer.run / "step-0000012" / "model.safetensors")[
            "output.weight"
        ]
        next_stage()
        seen["first"] = trainer.captioner.output.weight.detach().clone()
        assert not trainer.optimizer.state_dict()["state"]
        assert trainer.recipe.optimizer.clip == 1.0
        assert len(trainer.batches) == 2
        assert trainer.position.best_score == 0.5

    monkeypatch.setattr(trainer, "_next_phase", spy)
    trainer.train()
    assert torch.equal(seen["first"], seen["best"])
    assert not torch.equal(seen["first"], seen["last"])
    at = trainer.position
    assert (at.phase, at.step, at.epoch) == (1, 3 * 6 + 3 * 2, 6)
    assert read_pointers(trainer.run) == {
        "best": "step-0000024",
        "last": "step-0000024",
        "stage-1": "step-0000012",
        "stage-2": "step-0000024",
    }
    records = [json.loads(line) for line in (trainer.run / "history.jsonl").open()]
    assert "nll" in records[0]
    assert records[-2]["rate"] == trainer.recipe.optimizer.learning_rate
    assert "reward" in records[-2]


def test_phases_may_count_steps_and_end_in_the_middle_of_an_epoch(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    phases = "then=[{objective: {name: cross_entropy}, steps: 3}, "
    phases += "{objective: {name: cross_entropy}, epochs: 1}]"
    trainer = make_trainer(tiny_recipe, tmp_path / "run", "steps=8", "dev.every=9", phases)
    rates: list[float] = []
    take_step = trainer.step

    def step(batch: CaptionBatch) -> Any:
        values = take_step(batch)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        return values

    trainer.step = step  # type: ignore[method-assign]
    trainer.train()
    assert len(trainer.batches) == 6  # to an epoch
    pointers = read_pointers(trainer.run)
    assert {name: pointers[name] for name in ("stage-1", "last")} == {
        "stage-1": "step-0000008",
        # From the best weights on, which may be those of an earlier phase.
        "last": f"step-{trainer.position.phase_step + 6:07d}",
    }
    assert trainer.position.step - trainer.position.phase_step == 6
    assert len(rates) == 8 + 3 + 6
    full = trainer.recipe.optimizer.learning_rate
    assert rates[7] < 0.5 * full  # the schedule ends with the steps, not with the epoch
    assert rates[9] == pytest.approx(full * 2 / 5, rel=1e-6)  # and begins anew
    evaluated = [json.loads(line) for line in (trainer.run / "history.jsonl").open()]
    assert next(record["step"] for record in evaluated if "dev" in record) == 8


@pytest.mark.parametrize("length", ["", ", epochs: 1, steps: 1"])
def test_a_phase_has_epochs_or_steps(tiny_recipe: Path, length: str) -> None:
    with pytest.raises(ConfigError, match="then: give either 'epochs' or 'steps'"):
        load_recipe(tiny_recipe, [f"then=[{{objective: {{name: cross_entropy}}{length}}}]"])


def test_a_stage_that_spoils_the_captioner_ends_with_the_best_weights(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = "dev: {metric: BLEU-4, every: 1, patience: 0, beam: 2, tolerance: 0.1}"
    overrides = (
        "epochs=2",
        "dev.every=1",
        f"then=[{{objective: {{name: cross_entropy}}, epochs: 9, {guarded}}}]",
    )
    run = tmp_path / "run"
    trainer = make_trainer(tiny_recipe, run, *overrides)
    # In the first stage, which has no guard, dev may fall; then by 0.1, but not by more.
    scores = iter([0.5, 0.2, 0.4, 0.45, 0.39])
    monkeypatch.setattr(trainer, "_score", lambda captions: {"BLEU-4": next(scores)})
    trainer.train()
    assert (trainer.position.epoch, trainer.position.best_score) == (5, 0.5)
    assert next(scores, None) is None
    best, last = ((run / f"step-{step:07d}" / "model.safetensors") for step in (6, 30))
    names = {"best": best.parent.name, "last": last.parent.name}
    stages = {"stage-1": best.parent.name, "stage-2": last.parent.name}
    assert read_pointers(run) == names | stages
    assert last.read_bytes() == best.read_bytes()
    # The history says so. To go on with the run is to find it finished.
    history = (run / "history.jsonl").read_bytes()
    assert json.loads(history.splitlines()[-1]) == {"step": 30, "epoch": 5, "back_to": 6}
    fabric = Fabric(accelerator="cpu", devices=1)
    again = Trainer(fabric, load_recipe(tiny_recipe, overrides), run, False)
    again.resume()
    again.train()
    assert (run / "history.jsonl").read_bytes() == history


def test_means_of_the_weights_are_evaluated_and_kept_and_training_goes_on_with_its_own(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = "then=[{objective: {name: cross_entropy}, epochs: 1}]"  # goes on from the means
    overrides = ("optimizer.average=0.5", "epochs=1", "dev.every=1", stage)
    trainer = make_trainer(tiny_recipe, tmp_path / "run", *overrides)
    own = trainer.captioner.output.weight
    mean, evaluated = own.detach().clone(), []
    step = trainer.step

    def spy(batch: CaptionBatch) -> tuple[dict[str, float], int]:
        found = step(batch)
        steps = trainer.position.step + 1
        mean.lerp_(own.detach(), 1 - min(0.5, steps / (steps + 10)))
        return found

    monkeypatch.setattr(trainer, "step", spy)
    score = trainer._score
    monkeypatch.setattr(
        trainer, "_score", lambda captions: evaluated.append(captions) or score(captions)
    )
    trainer.train()
    first, last = (trainer.run / read_pointers(trainer.run)[name] for name in ("stage-1", "last"))
    kept = load_file(last / "model.safetensors")["output.weight"]
    assert torch.allclose(kept, mean, atol=1e-7)
    assert not torch.allclose(own, mean, atol=1e-4)  # it has gone on
    captions = sightline.load(first).caption([i.picture for i in trainer.dev_images], beam=2)
    assert [caption.text for caption in captions] == evaluated[0]


def test_a_plateau_cuts_the_rate(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(
        tiny_recipe,
        tmp_path / "run",
        "epochs=5",
        "dev.every=1",
        "schedule={name: plateau, warmup: 1, factor: 0.1, patience: 1}",
    )
    scores = iter([0.5, 0.4, 0.3, 0.2, 0.1])
    monkeypatch.setattr(trainer, "_score", lambda captions: {"BLEU-4": next(scores)})
    trainer.train()
    history = [
        json.loads(line) for line in (trainer.run / "history.jsonl").read_text().splitlines()
    ]
    rates = {record["epoch"]: record["rate"] for record in history if "rate" in record}
    assert rates[2] == pytest.approx(0.01)
    assert rates[3] == rates[4] == pytest.approx(0.001)


def test_a_loss_that_is_no_number_stops_the_run_with_its_step_term_and_checkpoint(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(tiny_recipe, tmp_path / "run", "epochs=1", "dev.every=1")
    trainer.train()
    with torch.no_grad():
        trainer.captioner.output.bias[5] = float("nan")
    batch = next(trainer.batches.epoch(1))
    with pytest.raises(TrainingError, match=r"step 6: the term 'nll' is nan; .*step-0000006"):
        trainer.step(batch)


def test_mistakes_show_before_anything_is_encoded(tiny_recipe: Path, tmp_path: Path) -> None:
    for override, says in (
        ("model.state_with=3", "did you mean 'state_width'"),
        ("objective.smoothing=3", "no key is called 'smoothing'"),
        ("objective.sampling_epochs=0", "sampling_epochs: must be at least 1"),
        ("objective={name: aligned}", "objective aligned: the model has no alignment"),
        ("objective={name: discriminated}", "the model has no discriminator; use hierarchical"),
        ("objective={name: adversarial}", "the model has no discriminator; use hierarchical"),
        ("objective={name: adversarial, rollouts: 0}", "rollouts: must be at least 1"),
        ("dev.tolerance=-1", "dev.tolerance: must be at least 0"),
        ("objective={name: variational}", "the model samples no regions; use hard_attention"),
        ("then=[{objective: {name: self_critical, samples: 1}, epochs: 1}]", "must be at least 2"),
        (
            "then=[{objective: {name: self_critical}, epochs: 0}]",
            r"then.0.\.epochs: must be at least",
        ),
        ("then=[{objective: {samples: 5}, epochs: 1}]", "then.objective: 'name' is missing"),
        (
            "then=[{objective: {name: self_critical}, epochs: 1, dev: {metric: CIDEr-D}}]",
            "then.dev: 'metric' and 'pictures' must be the same in all phases",
        ),
        (
            "then=[{objective: {name: self_critical}, epochs: 1, encoder: {train_from: stage4}}, "
            "{objective: {name: self_critical}, epochs: 1, encoder: {train_from: stage3}}]",
            r"then\.encoder\.train_from: must be the same as in earlier phases",
        ),
        ("optimizer.average=1", "betas, decay and average must be from 0 to below 1"),
        ("accelerator=abacus", "accelerator"),
        ("precision=none", "recipe: Precision 'none' is invalid"),
    ):
        with pytest.raises(ConfigError, match=says):
            train(load_recipe(tiny_recipe, (override,)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="no score is called 'BLUE'"):
        train(load_recipe(tiny_recipe, ("dev.metric=BLUE",)), tmp_path / "run")


def test_a_folder_belongs_to_one_recipe(tiny_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a training run"):
        train(load_recipe(tiny_recipe), tmp_path / "full")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("lock", ".writer.json.b_fi98a4", ".recipe.yaml.abcd1234"):
        (run / name).touch()  # what a run leaves that is killed as it begins
    train(load_recipe(tiny_recipe, ("epochs=1",)), run)
    assert not [path for path in run.iterdir() if path.name.startswith(".")]
    before = (run / "history.jsonl").read_bytes()
    with pytest.raises(
        ConfigError, match=r"another recipe \(epochs: 1, now \d+\).* \(add start_from="
    ):
        train(load_recipe(tiny_recipe, ("epochs=2",)), run)
    train(load_recipe(tiny_recipe, ("epochs=1",)), run)  # done already: nothing happens
    assert (run / "history.jsonl").read_bytes() == before
    # A run of a version that did not have a key yet goes on with its default.
    text = (run / "recipe.yaml").read_text()
    (run / "recipe.yaml").write_text(text.replace("  captions: null\n", ""))
    assert (run / "recipe.yaml").read_text() != text
    train(load_recipe(tiny_recipe, ("epochs=1",)), run)


def test_a_mistyped_path_leaves_nothing_behind(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(DataError, match="flicker8k: no such file or folder"):
        train(load_recipe(tiny_recipe, ("data.scenes=null", "data.path=flicker8k")), run)
    assert not run.exists()


def test_a_run_that_failed_at_once_can_be_given_another_recipe(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    """Such as one that lists a missing picture: what was mistaken is not kept."""
    run = tmp_path / "run"
    with pytest.raises(ZeroDivisionError), claim_run(run, load_recipe(tiny_recipe, ("epochs=7",))):
        raise ZeroDivisionError  # before the first checkpoint
    with claim_run(run, load_recipe(tiny_recipe, ("epochs=8",))):
        assert load_recipe(run / "recipe.yaml").epochs == 8


def test_a_run_has_one_writer(tiny_recipe: Path, tmp_path: Path) -> None:
    recipe, run = load_recipe(tiny_recipe), tmp_path / "run"
    busy = rf"process {os.getpid()} on .* is training here"
    with claim_run(run, recipe), pytest.raises(TrainingError, match=busy), claim_run(run, recipe):
        pass
    (run / ".checkpoints.json.abcd1234").touch()  # left by a kill
    with claim_run(run, recipe):
        assert not (run / ".checkpoints.json.abcd1234").exists()


def test_a_run_deletes_its_own_checkpoints_alone(tmp_path: Path) -> None:
    kept = ["my-step-notes", "step-by-step", "step-0000002-copy"]
    for name in ("step-0000001", ".step-0000003.abcd_123", "step-0000004", *kept):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    (tmp_path / "step-0000001" / "notes.txt").touch()
    write_pointers(tmp_path, {"last": "step-0000004"})
    left = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert left == sorted([*kept, "step-0000001", "step-0000004"])
    assert [path.name for path in (tmp_path / "step-0000001").iterdir()] == ["notes.txt"]


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_its_parent(tiny_recipe: Path, tmp_path: Path, number: int) -> None:
    """And resumed, the run ends as it would have."""
    run, whole = tmp_path / "run", tmp_path / "whole"
    two = ("devices=2", "accelerator=cpu", "checkpoint_every=1")
    process = start(tiny_recipe, run, *two)
    while not (run / "checkpoints.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    workers = descendants(process.pid)
    assert len(workers) >= 2
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (143 if number == signal.SIGTERM else -number)
    time.sleep(1)
    assert not [pid for pid in workers if is_at_work(pid)]
    for folder in (run, whole):
        process = start(tiny_recipe, folder, *two)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
    assert_same_run(run, whole)
