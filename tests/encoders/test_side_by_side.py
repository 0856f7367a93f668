"""Encoders side by side: the vectors of all, and explanations through all."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image

from sightline.captioner import Captioner
from sightline.encoders.encoder import Encoder, SideBySide, create_encoder
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import ConfigError, SightlineError
from sightline.explain.backward import backward_to_pixels
from sightline.explain.lrp.mode import LRPMode
from sightline.models.registry import create_model
from sightline.text.vocabulary import Vocabulary
from tiny_models import FOR_EVERY_CAPTIONER

BOTH = "efficientnet_lite0+efficientnet_lite1"


@pytest.fixture(scope="module")
def both() -> Encoder:
    return create_encoder(BOTH, stage="stage5+head", size=64)


def test_a_region_has_the_vectors_of_all(both: Encoder, examples: Path) -> None:
    pixels, window = both.preprocessing.prepare(Image.open(examples / "cat.jpg"))
    batch = torch.from_numpy(pixels)[None], torch.tensor([window])
    alone = [
        create_encoder("efficientnet_lite0", stage="stage5", size=64),
        create_encoder("efficientnet_lite1", size=64),
    ]
    with torch.inference_mode():
        together = both(*batch)
        expected = torch.cat([encoder(*batch).vectors for encoder in alone], -1)
    assert torch.equal(together.vectors, expected)
    assert together.vectors.shape[-1] == both.dim == 320 + 1280
    assert both.fingerprint not in {encoder.fingerprint for encoder in alone}

    again = Encoder.from_spec(json.loads(json.dumps(both.spec)))
    assert (again.spec, again.fingerprint) == (both.spec, both.fingerprint)
    larger = both.at_size(128)
    assert (larger.grid, larger.name, larger.spec["size"]) == ((4, 4), BOTH, 128)
    assert larger.fingerprint != both.fingerprint


def test_what_words_are_pulled_back_to_is_what_each_has(both: Encoder) -> None:
    """Multipliers of LRP through all at once are those through one after another."""
    assert isinstance(both, SideBySide)
    torch.manual_seed(0)
    x = both.normalise(torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8))
    c = torch.randn(2, 1, 4, both.dim)

    def multipliers(encoder: Encoder, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            vectors = encoder.vectors(x)
        regions = SimpleNamespace(vectors=vectors, mask=torch.ones(vectors.shape[:2]) > 0)
        targets: Any = SimpleNamespace(encoder=encoder, x=x, regions=regions)
        return backward_to_pixels(targets, c, LRPMode(1))

    first, second = both.parts
    expected = torch.cat(
        [
            multipliers(first, x[:, :3], c[..., : first.dim]),
            multipliers(second, x[:, 3:], c[..., first.dim :]),
        ],
        2,
    )
    torch.testing.assert_close(multipliers(both, x, c), expected)


@pytest.mark.parametrize("method", [m for m in FOR_EVERY_CAPTIONER if m != "occlusion"])
def test_words_can_be_explained_by_every_method(both: Encoder, examples: Path, method: str) -> None:
    torch.manual_seed(0)
    vocabulary = Vocabulary(("a", "cat"))
    widths = ("region_width", "word_width", "state_width", "attention_width")
    model = create_model("soft_attention", len(vocabulary), both.dim, dict.fromkeys(widths, 8))
    captioner = Captioner(both, model.eval(), vocabulary)
    (why,) = captioner.explain(examples / "cat.jpg", "a cat", words=["cat"], method=method)
    assert why.heatmap is not None
    assert abs(why.heatmap).sum() > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"stage": "stage4+head"}, r"the grids differ at 64 px \(efficientnet_lite0 4 x 4, effic"),
        ({"stage": "head"}, "2 encoders, but stages for 1"),
        ({"weights": "here.pth"}, "is one file, but these are 2"),
        ({"name": "efficientnet_lite0+alexnet"}, "no encoder is called 'alexnet'"),
    ],
)
def test_what_does_not_fit_is_explained(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(SightlineError, match=says):
        create_encoder(**{"name": BOTH, "size": 64, **arguments})


def test_they_are_used_as_they_are(both: Encoder) -> None:
    with pytest.raises(ConfigError, match="cannot be trained; only single encoders can"):
        TrainableStages(both, "stage5")
    with pytest.raises(SightlineError, match="ask one of them"):
        both.classify(torch.zeros(1, 64, 64, 3))
