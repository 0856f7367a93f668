"""The folder of a run: whose it is, and what may be deleted there."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from sightline.checkpoint import write_pointers
from sightline.errors import ConfigError, DataError, TrainingError
from sightline.recipe import OptimizerRecipe, load_recipe
from sightline.training.averaging import AveragedWeights
from sightline.training.loop import train
from sightline.training.run import claim_run, pack_tensors, unpack_tensors
from sightline.training.schedule import create_optimizer


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


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_picture_without_captions_is_named_before_anything_is_written(
    tiny_recipe: Path, tmp_path: Path, split: str
) -> None:
    captions = tmp_path / "captions.jsonl"
    records = [
        {"image": f"{name}.jpg", "captions": [] if name == split else ["a dog"], "split": name}
        for name in ("train", "dev")
    ]
    captions.write_text("\n".join(map(json.dumps, records)))
    recipe = load_recipe(tiny_recipe, ("data.scenes=null", f"data.path={captions}"))
    says = rf"{split}\.jpg: .* without captions; .*sightline data check .*captions\.jsonl --fix"
    with pytest.raises(DataError, match=says):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "made").mkdir()
    with pytest.raises(DataError, match=says):
        train(recipe, tmp_path / "made")
    assert not list((tmp_path / "made").iterdir())


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


@pytest.mark.parametrize("name", ["adamw", "rmsprop"])
def test_an_optimiser_goes_on_exactly_whatever_the_order_of_its_weights_in_memory(
    name: str, tmp_path: Path
) -> None:
    """Kernels of encoders are channels_last; files know one order only."""

    def make() -> tuple[torch.nn.Module, torch.optim.Optimizer, AveragedWeights]:
        torch.manual_seed(0)
        layer = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        recipe = OptimizerRecipe(name, 0.01)
        return layer, create_optimizer(layer, recipe), AveragedWeights([layer], 0.5)

    def step(layer: torch.nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
        optimizer.zero_grad()
        random = torch.Generator().manual_seed(number)
        layer(torch.randn(2, 3, 5, 5, generator=random)).square().sum().backward()
        optimizer.step()

    whole, of_whole, _ = make()
    layer, optimizer, averages = make()
    for number in range(3):
        step(whole, of_whole, number)
        step(layer, optimizer, number)
    save_file(pack_tensors(optimizer, [{"cpu": torch.get_rng_state()}]), tmp_path / "state")
    save_file(averages.pack(), tmp_path / "weights")
    again, of_again, averages = make()
    averages.unpack(load_file(tmp_path / "weights"))
    assert torch.equal(again.weight, layer.weight)
    unpack_tensors(of_again, load_file(tmp_path / "state"), 0, torch.device("cpu"))
    for number in range(3, 6):
        step(whole, of_whole, number)
        step(again, of_again, number)
    assert torch.equal(again.weight, whole.weight)
