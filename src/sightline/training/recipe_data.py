"""The dataset and the encoder that a recipe names."""

from pathlib import Path

from sightline.data.dataset import CaptionDataset
from sightline.data.readers import read_dataset
from sightline.data.scenes import make_scene_dataset
from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.errors import DataError
from sightline.recipe import DataRecipe, EncoderRecipe


def dataset_of(recipe: DataRecipe) -> CaptionDataset:
    """The captioned pictures that a recipe names."""
    if recipe.scenes is None:
        return read_dataset(
            Path(str(recipe.path)).expanduser(),
            recipe.images,
            dev_from_train=recipe.dev_from_train,
            max_captions=recipe.max_captions,
            train_pictures=recipe.train_pictures,
        )
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


def require_data(recipe: DataRecipe) -> None:
    """Refuse data that is not there, or has no captions to train or to choose a checkpoint by.

    To be called before anything is written. (Scenes are always there.)
    """
    if recipe.scenes is None:
        dataset = dataset_of(recipe)
        for image in (*dataset.split("train"), *dataset.split("dev")):
            if not image.captions:
                raise DataError(
                    f"{image.name}: a picture of split '{image.split}' without captions; leave it "
                    f"out with sightline data check {recipe.path} --fix FILE.jsonl"
                )


def encoder_of(recipe: EncoderRecipe) -> Encoder:
    """The image encoder that a recipe names."""
    if recipe.features is not None:
        return PrecomputedEncoder(Path(recipe.features))
    return create_encoder(
        recipe.name, stage=recipe.stage, size=recipe.size, fit=recipe.fit, weights=recipe.weights
    )
