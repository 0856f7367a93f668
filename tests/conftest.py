"""What tests of several folders share."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sightline.checkpoint import save_checkpoint
from sightline.data.vocabulary import Vocabulary
from sightline.encoders.encoder import create_encoder
from sightline.models.registry import create_model

# Test processes share the cores; with several threads each they would mostly wait for each other.
torch.set_num_threads(1)

WORDS = ("a", "the", "red", "cat", "cup", "of", "coffee", "sits", "on", "table")
SIZES = {"region_width": 16, "word_width": 16, "state_width": 16, "attention_width": 16}

SaveCaptioner = Callable[..., Path]


@pytest.fixture(scope="session")
def examples() -> Path:
    """The freely licensed photographs."""
    return Path(__file__).parents[1] / "examples"


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
