"""Several processes that train one captioner: as one would, and together to the end."""

import json
import signal
import time
from pathlib import Path

import pytest
import torch

from attack.commands import descendants, is_at_work
from sightline.errors import TrainingError
from sightline.training import processes
from sightline.training.processes import launch
from tiny_runs import (
    REGIMES,
    assert_same_run,
    gradients_of_one_and_two,
    start,
)


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
    batches = gradients_of_one_and_two(tiny_recipe, tmp_path)
    assert len(batches) >= 8
    for one, two in batches:
        # (Other terms are larger sums, of the same words.)
        for parameter in {"term nll", *(name for name in one if not name.startswith("term "))}:
            torch.testing.assert_close(two[parameter], one[parameter], rtol=0, atol=1e-6)


def test_a_worker_ends_its_connection_before_it_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "end_with_parent", lambda: None)
    monkeypatch.setattr(processes.signal, "signal", lambda *_: None)
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    done = []
    processes._worker(None, done.append, None)  # type: ignore[arg-type]
    assert len(done) == 1
    assert not torch.distributed.is_initialized()


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
