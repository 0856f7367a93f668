"""What a run reads of its pictures."""

from pathlib import Path

from lightning_fabric import Fabric

from sightline.captioner import Captioner
from sightline.checkpoint import find_checkpoint
from sightline.evaluation.evaluate import evaluate
from sightline.recipe import load_recipe
from sightline.training.loop import train
from sightline.training.recipe_data import dataset_of
from sightline.training.region_provider import RegionProvider


def test_regions_in_half_precision_are_for_training_alone(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    recipe = load_recipe(tiny_recipe, ("encoder.precision=bf16", "epochs=1", "dev.every=1"))
    train(recipe, tmp_path / "run")
    (folder,) = tmp_path.glob("efficientnet_lite0-*")
    assert folder.name.endswith("-bf16")
    data = dataset_of(recipe.data)
    fabric = Fabric(accelerator="cpu", devices=1)
    provider = RegionProvider(fabric, recipe, data.split("train"), data.split("dev"), False)
    assert provider.cache(recipe).folder == folder
    captioner = Captioner.load(find_checkpoint(tmp_path / "run"), device="cpu")
    evaluate(captioner, data.split("test"), ["bleu"], cache=tmp_path)
    assert {path.name for path in tmp_path.glob("efficientnet_lite0-*")} == {
        folder.name,
        folder.name.removesuffix("-bf16"),
    }
