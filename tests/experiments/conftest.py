"""Transformers of random weights that know a few words, as runs on scenes."""

from pathlib import Path

import pytest
import torch
import yaml

from sightline.checkpoint import save_checkpoint
from sightline.data.scene_drawing import SHAPES
from sightline.encoders.encoder import create_encoder
from sightline.models.registry import create_model
from sightline.text.vocabulary import Vocabulary

SIZES = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 16}


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Makes a run of a Transformer; the same seed makes the same one."""

    def make(name: str, seed: int = 0) -> Path:
        torch.manual_seed(seed)
        encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
        vocabulary = Vocabulary(("a", "the", "and", *SHAPES))
        model = create_model(name, len(vocabulary), encoder.dim, SIZES)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)
        folder = tmp_path_factory.mktemp("runs") / f"{name}-{seed}"
        config = {
            "model": {"name": name, **SIZES},
            "region_dim": encoder.dim,
            "encoder": encoder.spec,
            "decoding": {"beam": 2, "length_power": 0.5},
            "vocabulary": vocabulary.to_json(),
        }
        save_checkpoint(folder, model, config, "# card\n")
        recipe = {
            "data": {"scenes": {"train": 2, "dev": 2, "test": 4, "size": 64}, "min_count": 1},
            "model": {"name": name},
            "epochs": 1,
        }
        (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        return folder

    return make


@pytest.fixture(scope="session")
def aligned(make_run):
    return make_run("aligned_transformer")


@pytest.fixture(scope="session")
def plain(make_run):
    return make_run("transformer")
