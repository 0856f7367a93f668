"""What tests of several folders share."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from sightline.checkpoint import save_checkpoint
from sightline.encoders.encoder import create_encoder
from sightline.models.registry import create_model
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier, save_classifier
from sightline.support.logistic import Logistic
from sightline.text.vocabulary import Vocabulary
from tiny_recipe import TINY

# Test processes share the cores; with several threads each they would mostly wait for each other.
torch.set_num_threads(1)

WORDS = ("a", "the", "red", "cat", "cup", "of", "coffee", "sits", "on", "table")
SIZES = {"region_width": 16, "word_width": 16, "state_width": 16, "attention_width": 16}

SaveCaptioner = Callable[..., Path]


@pytest.fixture(scope="session")
def examples() -> Path:
    """The freely licensed photographs."""
    return Path(__file__).parents[1] / "examples" / "others"


@pytest.fixture(scope="session")
def save_captioner() -> SaveCaptioner:
    """Writes a checkpoint of random weights, loud enough to have opinions; returns its folder."""

    def save(folder: Path, seed: int = 0, words: tuple[str, ...] = WORDS) -> Path:
        torch.manual_seed(seed)
        encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
        vocabulary = Vocabulary(words)
        model = create_model("soft_attention", len(vocabulary), encoder.dim, SIZES)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
        config = {
            "model": {"name": "soft_attention", **SIZES},
            "region_dim": encoder.dim,
            "encoder": encoder.spec,
            "decoding": {"beam": 4, "length_power": 0.5},
            "vocabulary": vocabulary.to_json(),
        }
        save_checkpoint(folder, model, config, "# card\n")
        return folder

    return save


@pytest.fixture(scope="session")
def checkpoint(save_captioner: SaveCaptioner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One such checkpoint, to be read only."""
    return save_captioner(tmp_path_factory.mktemp("captioner") / "checkpoint")


@pytest.fixture(scope="session")
def fitted_checkpoint(
    save_captioner: SaveCaptioner, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same with a classifier of words that trusts the likely ones; to be read only."""
    folder = save_captioner(tmp_path_factory.mktemp("fitted") / "checkpoint")
    reference_regions = Regions(torch.rand(3, 16, 112), torch.ones(3, 16) > 0, torch.rand(3, 16, 4))
    names = ("relevance_mean", "log_probability")
    likely = Logistic(np.zeros(2), np.ones(2), np.array([0.0, 4.0]), 2.0)
    save_classifier(
        folder,
        SupportClassifier(
            names, likely, seen=0.7, unsupported=0.4, reference_regions=reference_regions
        ),
    )
    return folder


@pytest.fixture
def tiny_recipe(tmp_path: Path) -> Path:
    """The recipe in a file; its regions are cached beside it."""
    path = tmp_path / "tiny.yaml"
    path.write_text(
        yaml.safe_dump({**TINY, "encoder": {**TINY["encoder"], "cache": str(tmp_path)}})
    )
    return path
