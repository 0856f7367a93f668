"""Several processes that train one captioner: as one would, and together to the end."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attack.commands import descendants, is_at_work
from sightline.errors import TrainingError
from sightline.training.processes import launch
from tiny_runs import ENVIRONMENT, REGIMES, assert_same_run, start

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


class Fabric:
    """Two processes, of which one complains; then this one is left with an error."""

    world_size = 2

    def __init__(self, error):
        self.error = error

    def launch(self, work):
        work.keywords["failures"].put("connection closed by peer")
        raise self.error


def test_a_failure_of_a_process_is_said():
    with pytest.raises(TrainingError, match="connection closed by peer"):
        launch(Fabric(RuntimeError("a process ended")), print)


def test_a_signal_is_no_failure_whatever_processes_say_as_they_end():
    with pytest.raises(KeyboardInterrupt):
        launch(Fabric(KeyboardInterrupt()), print)
