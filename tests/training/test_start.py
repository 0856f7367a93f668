"""A run that begins with what another one ended with."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sightline.checkpoint import find_checkpoint, load_config
from sightline.errors import CheckpointError, ConfigError
from sightline.recipe import load_recipe
from sightline.recipes import find_recipe
from sightline.training.loop import train
from sightline.training.recipe_check import start_of

STILL = ("optimizer.learning_rate=0", "encoder.learning_rate=0", "epochs=1", "dev.every=1")


def trained(recipe: Path, run: Path, *overrides: str) -> Path:
    train(load_recipe(recipe, overrides), run)
    return find_checkpoint(run)


@pytest.mark.parametrize("encoder", [(), ("encoder.train_from=stage4",)])
def test_it_begins_with_its_weights_and_words(
    tiny_recipe: Path, tmp_path: Path, encoder: tuple[str, ...]
) -> None:
    before = trained(tiny_recipe, tmp_path / "before", *encoder, "epochs=2")
    start = f"start_from={tmp_path / 'before'}"
    words = "data.vocabulary_size=5"  # of its own it would know fewer
    after = trained(tiny_recipe, tmp_path / "after", *encoder, start, words, *STILL)
    assert load_config(after)["vocabulary"] == load_config(before)["vocabulary"]
    assert load_config(after)["training"]["epoch"] == 1
    for name in ("model", "encoder")[: 1 + len(encoder)]:
        its, ours = (load_file(folder / f"{name}.safetensors") for folder in (before, after))
        assert all(torch.equal(its[key], ours[key]) for key in its)


def test_what_does_not_fit_is_refused_before_anything_is_made(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    trained(tiny_recipe, tmp_path / "before", "encoder.train_from=stage4", "epochs=1")
    start = f"start_from={tmp_path / 'before'}"
    run = tmp_path / "after"
    with pytest.raises(ConfigError, match=r"encoder\.train_from stage4, and the recipe None"):
        trained(tiny_recipe, run, start)
    with pytest.raises(ConfigError, match=r"model\.name soft_attention, and the recipe transf"):
        trained(tiny_recipe, run, start, "encoder.train_from=stage4", "model={name: transformer}")
    with pytest.raises(CheckpointError, match="nowhere does not exist"):
        trained(tiny_recipe, run, f"start_from={tmp_path / 'nowhere'}")
    assert not run.exists()


def test_the_recipe_that_trains_the_bundled_captioner_further_fits_it() -> None:
    recipe = load_recipe(find_recipe("flickr8k/fine_tune"))
    start = start_of(recipe)
    assert start == find_checkpoint()
    config = load_config(start)["model"]
    assert {key: config[key] for key in recipe.model if key != "dropout"} == {
        key: value for key, value in recipe.model.items() if key != "dropout"
    }
