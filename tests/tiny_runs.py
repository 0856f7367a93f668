"""Runs of the tiny recipe in every regime: started as processes, compared byte by byte."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from sightline.checkpoint import read_pointers

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


# Every batch of an epoch: its gradients and the terms of its loss, which the first process keeps.
_GRADIENTS = """
import sys
from pathlib import Path
import torch
from lightning_fabric import Fabric
from safetensors.torch import save_file
from sightline.encoders.workers import is_under_torchrun
from sightline.training.loop import Trainer
from sightline.training.processes import make_fabric
from sightline.recipe import load_recipe

def gradients(fabric, recipe, folder):
    trainer = Trainer(fabric, load_recipe(recipe), folder, False)
    trainer.resume()
    for number, batch in enumerate(trainer.batches.epoch(0)):
        values, _ = trainer.backward(batch)
        if fabric.is_global_zero:
            found = {n: p.grad for n, p in trainer.captioner.named_parameters()}
            if trainer.trainable is not None:
                found |= {n: p.grad for n, p in trainer.trainable.named_parameters()}
            found |= {f"term {n}": torch.tensor(value) for n, value in values.items()}
            save_file(found, folder / f"{number}.safetensors")
        trainer.optimizer.zero_grad()

if __name__ == "__main__":
    devices, recipe, folder = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir(exist_ok=True)
    if is_under_torchrun():
        fabric = make_fabric(load_recipe(recipe))
    else:
        strategy = "ddp_spawn" if devices > 1 else "auto"
        fabric = Fabric(accelerator="cpu", devices=devices, strategy=strategy)
    fabric.launch(gradients, recipe, folder)
"""


def _run_in_processes(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, env=ENVIRONMENT)


def gradients_of_one_and_two(
    recipe: Path,
    folder: Path,
    prelude: str = "",
    run_two: Callable[[list[str]], None] = _run_in_processes,
) -> list[tuple[dict[str, Tensor], dict[str, Tensor]]]:
    """What one process finds for each batch, and what two find; `prelude` runs in each of them.

    `run_two` runs the script in two processes; by default the script starts them.
    """
    script = folder / "gradients.py"
    script.write_text(prelude + _GRADIENTS)
    run_two([str(script), "2", str(recipe), str(folder / "2")])
    _run_in_processes([str(script), "1", str(recipe), str(folder / "1")])
    names = sorted(path.name for path in (folder / "1").glob("*.safetensors"))
    return [(load_file(folder / "1" / n), load_file(folder / "2" / n)) for n in names]
