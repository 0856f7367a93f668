"""Attention of layers and heads, raw, aligned and rolled out."""

import pytest
import torch

from sightline.errors import ConfigError
from sightline.explain.attention import attention
from sightline.explain.targets import Targets
from sightline.regions import Regions
from tiny_models import REGION_DIM, VOCABULARY, create


@pytest.fixture
def targets():
    torch.manual_seed(0)
    regions = Regions(
        torch.randn(1, 5, REGION_DIM).double(), torch.ones(1, 5) > 0, torch.rand(1, 5, 4).double()
    )
    tokens = torch.randint(4, VOCABULARY, (1, 1, 4))
    model = create("aligned_transformer", 3)
    return Targets(model, regions, tokens, torch.tensor([[3, 1]]), torch.tensor([[5, 6]]))


def test_one_head_of_one_layer(targets):
    maps = targets.model.attention_maps(targets.tokens, targets.model.encode(targets.regions))
    found = attention(targets, "raw", layer=1, head=0).regions[0]
    assert torch.equal(found, maps.raw[0, 0, [3, 1], 1, 0])
    found = attention(targets, "aligned", layer=1).regions[0]
    torch.testing.assert_close(found, maps.used[0, 0, [3, 1], 1].mean(1))
    found = attention(targets, "raw").regions[0]
    torch.testing.assert_close(found, maps.raw[0, 0, [3, 1]].mean((1, 2)))
    first, second = maps.raw[0, 0, 3].mean(1)
    rolled = attention(targets, "rollout").regions[0, 0]
    torch.testing.assert_close(rolled, (first / 4 + second / 2) / 0.75)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "raw", "layer": 2}, "there is no layer 2; the model has 2"),
        ({"weights": "raw", "head": -3}, "there is no head -3; the model has 2"),
        ({"head": 0}, "needs weights 'raw' or 'aligned'"),
        ({"weights": "rollout", "head": 0}, "rollout combines all layers and heads"),
        ({"weights": "rwa"}, "weights must be one of reported, raw, aligned, rollout, not 'rwa'"),
    ],
)
def test_what_there_is_not_is_refused(targets, options, message):
    with pytest.raises(ConfigError, match=message):
        attention(targets, **options)


def test_only_a_transformer_has_heads(targets):
    other = Targets(
        create("grid_td", 0), targets.regions, targets.tokens, targets.places, targets.words
    )
    with pytest.raises(ConfigError, match="only a Transformer has 'raw'"):
        attention(other, "raw")
