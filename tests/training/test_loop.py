"""The loop: phases, early stopping, means of weights, errors."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file

import sightline
from sightline.checkpoint import read_pointers
from sightline.errors import ConfigError, TrainingError
from sightline.evaluation.history import last_terms, read_history
from sightline.evaluation.results import results_of
from sightline.recipe import dump_recipe, load_recipe
from sightline.training.batch import CaptionBatch
from sightline.training.loop import Trainer, train


def make_trainer(recipe: Path, run: Path, *overrides: str) -> Trainer:
    run.mkdir()
    settings = load_recipe(recipe, overrides)
    fabric = Fabric(accelerator="cpu", devices=1, precision=settings.precision)  # type: ignore[arg-type]
    trainer = Trainer(fabric, settings, run, False)
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


def test_the_first_log_line_of_a_phase_is_of_its_own_steps(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase = "then=[{objective: {name: cross_entropy}, steps: 3}]"
    trainer = make_trainer(tiny_recipe, tmp_path / "run", "steps=5", "log_every=4", phase)
    losses = iter([0.0] * 5 + [1.0, 3.0, 5.0])  # logged at steps 4 and 8
    monkeypatch.setattr(trainer, "step", lambda batch: ({"nll": next(losses)}, 1))
    trainer.train()
    records = [json.loads(line) for line in (trainer.run / "history.jsonl").open()]
    assert [record["nll"] for record in records if "nll" in record] == [0, 3]


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
    (run / "recipe.yaml").write_text(dump_recipe(load_recipe(tiny_recipe, overrides)))
    assert [row.dev["BLEU-4"] for row in results_of(run)] == [0.5, 0.5]
    assert "nll" in last_terms(read_history(run))
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


@pytest.mark.parametrize("clip", [5.0, 0.0])
def test_a_gradient_that_is_no_number_stops_the_run_before_it_spoils_the_weights(
    tiny_recipe: Path, tmp_path: Path, clip: float
) -> None:
    trainer = make_trainer(tiny_recipe, tmp_path / "run", f"optimizer.clip={clip}")
    trainer.captioner.output.bias.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(TrainingError, match=r"step 0: the norm of the gradient is .*; none"):
        trainer.step(next(trainer.batches.epoch(0)))
    assert trainer.captioner.output.bias.isfinite().all()


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
        ("precision=16-mixed", "precision: 16-mixed needs a scaled loss, .*use bf16-mixed"),
        ("precision='16'", "precision: 16 needs a scaled loss"),
        ("precision=bf16-true", "precision: bf16-true is not supported; use 32-true or bf16-m"),
    ):
        with pytest.raises(ConfigError, match=says):
            train(load_recipe(tiny_recipe, (override,)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="no score is called 'BLUE'"):
        train(load_recipe(tiny_recipe, ("dev.metric=BLUE",)), tmp_path / "run")


HIERARCHICAL = (
    "model={name: hierarchical, region_width: 8, word_width: 8, worker_width: 8, "
    "manager_width: 8, attention_width: 8, discriminator_width: 8}"
)


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true"])
@pytest.mark.parametrize(
    "overrides",
    [
        ("objective={name: self_critical, samples: 2}",),
        ("objective={name: self_critical, samples: 2, sampling: beam}",),
        ("objective={name: adversarial, rollouts: 1}", HIERARCHICAL),
        ("objective={name: adversarial_pretraining}", HIERARCHICAL),
    ],
    ids=["sampled", "beam", "adversarial", "adversarial pretraining"],
)
def test_captions_are_drawn_in_the_precision_that_they_are_scored_in(
    tiny_recipe: Path, tmp_path: Path, precision: str, overrides: tuple[str, ...]
) -> None:
    trainer = make_trainer(tiny_recipe, tmp_path / "run", *overrides, f"precision={precision}")
    drawn_in: list[torch.dtype] = []

    def note_dtype(module: torch.nn.Module, _: object, output: torch.Tensor) -> None:
        if not torch.is_grad_enabled():
            drawn_in.append(output.dtype)

    linears = [
        module
        for name, module in trainer.captioner.named_modules()
        # (What the discriminator says of captions is in 32 bits.)
        if isinstance(module, torch.nn.Linear) and not name.startswith("discriminator.")
    ]
    hooks = [linear.register_forward_hook(note_dtype) for linear in linears]
    trainer.step(next(iter(trainer.batches.epoch(0, 0))))
    for hook in hooks:
        hook.remove()
    assert set(drawn_in) == {torch.bfloat16 if precision == "bf16-mixed" else torch.float32}
