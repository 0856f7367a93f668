"""The dataset and the encoder that a recipe names."""

from pathlib import Path

from sightline.data.dataset import CaptionDataset
from sightline.data.readers import read_dataset
from sightline.data.scenes import make_scene_dataset
from sightline.encoders.encoder import Encoder, create_encoder
from sightline.errors import ConfigError
from sightline.training.recipe import DataRecipe, EncoderRecipe, Recipe, load_recipe


def load_recipe_of(run: Path) -> Recipe:
    """The recipe that a run was started with."""
    path = run / "recipe.yaml"
    if not path.is_file():
        raise ConfigError(f"{run}: not a training run (no recipe.yaml); name the dataset by --data")
    return load_recipe(path)


def dataset_of(recipe: DataRecipe) -> CaptionDataset:
    """The captioned pictures that a recipe names."""
    if recipe.scenes is None:
        return read_dataset(Path(str(recipe.path)).expanduser(), recipe.images)
    scenes = recipe.scenes
    return make_scene_dataset(
        scenes.train,
        scenes.dev,
        scenes.test,
        seed=scenes.seed,
        difficulty=scenes.difficulty,
        size=scenes.size,
        bias=scenes.bias,
    )


def encoder_of(recipe: EncoderRecipe) -> Encoder:
    """The image encoder that a recipe names."""
    return create_encoder(
        recipe.name, stage=recipe.stage, size=recipe.size, fit=recipe.fit, weights=recipe.weights
    )
