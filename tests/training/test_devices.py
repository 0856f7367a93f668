"""The device law of training: steps, dev evaluations and checkpoints of a run on an accelerator."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.accelerators import CPUAccelerator
from lightning_fabric.strategies import SingleDeviceStrategy
from PIL import Image
from safetensors.torch import load_file, save_file

from device_mode import ACCELERATOR, DeviceMode, accelerator
from sightline.checkpoint import read_pointers
from sightline.data.dataset import CaptionedImage
from sightline.models.registry import MODELS, create_model
from sightline.recipe import load_recipe
from sightline.text.vocabulary import Vocabulary
from sightline.training.loop import Trainer
from sightline.training.objectives.registry import create_objective, list_objectives
from tiny_batch import make_batch

WORDS = ("a", "dog", "cat", "runs", "on", "the", "grass", "red")


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeviceMode]:
    # Modes are of a thread, so pictures are encoded in this one.
    monkeypatch.setattr("sightline.encoders.encode.in_parallel", lambda *given: map(*given[:2]))
    with accelerator() as mode:
        yield mode


OBJECTIVES = {
    "cross_entropy": ("grid_td", {"label_smoothing": 0.1, "doubly_stochastic": 1.0}),
    "self_critical": ("soft_attention", {"samples": 2, "baseline": "greedy", "max_length": 4}),
    "aligned": ("aligned_transformer", {}),
    "adversarial_pretraining": ("hierarchical", {"scheduled_sampling": 0.5}),
    "adversarial": ("hierarchical", {"rollouts": 2}),
    "lrp_inference": ("adaptive_attention", {}),
    "reinforce": ("hard_attention", {}),
}
STEPS = [
    *((objective, model, options) for objective, (model, options) in OBJECTIVES.items()),
    *(("cross_entropy", model, {}) for model in MODELS.builtin),
    ("self_critical", "aligned_transformer", {"sampling": "beam", "samples": 2, "max_length": 4}),
    ("lrp_inference", "transformer", {"form": "counterweight"}),
]


def test_every_objective_is_held_to_the_law() -> None:
    assert set(OBJECTIVES) == set(list_objectives())


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(("name", "model_name", "options"), STEPS)
def test_a_step_is_taken_on_the_device(name: str, model_name: str, options: dict) -> None:
    variant = MODELS.builtin[model_name].tiny[0]
    model = create_model(model_name, 12, 5, variant).to(ACCELERATOR).train()
    optimizer = torch.optim.Adam(model.parameters())
    objective = create_objective({"name": name, **options})
    picture = Image.new("RGB", (4, 4))
    images = [CaptionedImage("x.png", picture, ("a dog runs", "the cat"), "train")] * 2
    objective.check(model)
    objective.prepare(images, Vocabulary(WORDS))
    batch = replace(make_batch(), images=torch.tensor([0, 1])).to(ACCELERATOR)
    for epoch in range(2):
        terms = objective.terms(model, batch, epoch)
        assert {term.total.device for term in terms.values()} == {ACCELERATOR}
        sum(term.weight * term.total for term in terms.values() if term.weight).backward()
        optimizer.step()
    assert {p.grad.device for p in model.parameters() if p.grad is not None} == {ACCELERATOR}


class _Accelerator(CPUAccelerator):
    def setup_device(self, device: torch.device) -> None:
        """There is nothing to set up."""


def make_trainer(recipe: Path, run: Path, *overrides: str) -> Trainer:
    run.mkdir(exist_ok=True)
    fabric = Fabric(strategy=SingleDeviceStrategy(ACCELERATOR, _Accelerator()))
    trainer = Trainer(
        fabric, load_recipe(recipe, ("epochs=2", "dev.pictures=2", *overrides)), run, False
    )
    trainer.resume()
    return trainer


REGIMES = {
    "plain": ("model.name=hard_attention",),
    "averaged, then a trained encoder, of cuts": (
        "epochs=1",
        "encoder.workers=0",
        "data.mirror=true",
        "optimizer.average=0.9",
        "then=[{objective: {name: cross_entropy}, epochs: 1, "
        "encoder: {train_from: stage4, random_cut: 0.5}}]",
    ),
}


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("regime", list(REGIMES))
def test_a_run_and_its_dev_evaluations_stay_on_the_device_and_resume_bit_for_bit(
    tiny_recipe: Path, tmp_path: Path, regime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    make_trainer(tiny_recipe, whole, *REGIMES[regime]).train()
    # Killed in the middle of each epoch.
    for after in (4, 8):
        trainer = make_trainer(tiny_recipe, killed, *REGIMES[regime])
        save = trainer.save

        def save_and_stop(best=False, trainer=trainer, save=save, after=after):
            save(best)
            if trainer.position.step == after:
                raise KeyboardInterrupt

        monkeypatch.setattr(trainer, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
    trainer = make_trainer(tiny_recipe, killed, *REGIMES[regime])
    trainer.train()
    assert read_pointers(killed) == read_pointers(whole)
    for name in set(read_pointers(whole).values()):
        for file in sorted((whole / name).glob("*.safetensors")):
            assert (killed / name / file.name).read_bytes() == file.read_bytes()
    assert (killed / "history.jsonl").read_bytes() == (whole / "history.jsonl").read_bytes()
    # What sees the pictures would work on the CPU, too, but slowly.
    readers = [trainer.encoder, *map(trainer.regions._reader, trainer.phases)]
    assert {p.device for reader in readers for p in reader.parameters()} == {ACCELERATOR}


def test_a_checkpoint_keeps_every_generator_and_does_without_those_it_lacks(
    mode: DeviceMode, tiny_recipe: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(tiny_recipe, tmp_path / "run")
    trainer.save()
    kept = {"cpu": torch.get_rng_state(), "device": mode.random.get_state()}
    path = tmp_path / "run" / "step-0000000" / "training.safetensors"
    tensors = load_file(path)
    assert torch.equal(tensors["random.0"], kept["cpu"])
    assert torch.equal(tensors["random.0.meta"], kept["device"])
    torch.manual_seed(77)
    trainer.resume()
    assert torch.equal(torch.get_rng_state(), kept["cpu"])
    assert torch.equal(mode.random.get_state(), kept["device"])
    # As version 0.1 wrote it.
    del tensors["random.0.meta"]
    save_file(tensors, path)
    mode.random.manual_seed(78)
    before = mode.random.get_state()
    trainer.resume()
    assert torch.equal(torch.get_rng_state(), kept["cpu"])
    assert torch.equal(mode.random.get_state(), before)
