from dataclasses import replace

import pytest
import torch

from sightline.models.attention import MultiHeadAttention
from sightline.models.registry import create_model
from sightline.models.spatial_transformer import SpatialTransformer, SpatialTransformerConfig
from sightline.models.transformer_layers import sinusoids
from sightline.regions import Regions

SIZES = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 12}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return SpatialTransformer(9, 6, SpatialTransformerConfig(**SIZES)).double().eval()


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True] * 5, [False, True, True, False, True]])
    return Regions(torch.randn(2, 5, 6).double(), mask, torch.zeros(2, 5, 4))


def test_its_sizes_are_the_papers():
    config = SpatialTransformerConfig()
    assert (config.encoder_layers, config.decoder_layers) == (2, 4)
    assert (config.width, config.heads, config.feed_forward, config.dropout) == (512, 8, 1024, 0.1)
    assert (config.layer.norm, config.layer.scale_by_length) == ("post", True)
    assert not replace(config, scale_by_length=False).layer.scale_by_length  # τ of Vaswani et al.


def test_places_are_sinusoids_over_the_flattened_grid(model, regions):
    place = model.place(regions)
    torch.testing.assert_close(place[0], sinusoids(torch.arange(5).double(), 8))
    there = place[1][regions.mask[1]]
    torch.testing.assert_close(there, sinusoids(torch.arange(3).double(), 8))


def test_every_attention_is_scaled_by_what_it_may_see(model, regions, monkeypatch):
    """τ² = d_len + d_attn: regions of the picture, words up to this one (paper 3, eq. 2)."""
    scales = []

    def scaled_query(self, x, visible, original=MultiHeadAttention.scaled_query):
        query = original(self, x, visible)
        plain = self.query(x).unflatten(-1, (2, 4)).transpose(1, 2)
        scales.append((plain / query).square()[..., 0])
        return query

    monkeypatch.setattr(MultiHeadAttention, "scaled_query", scaled_query)
    model(regions, torch.tensor([[[1, 4, 5]], [[1, 6, 7]]]))
    assert len(scales) == 1 + 2 * 2
    for scale in (scales[0], scales[2], scales[4]):  # the encoder, and words at the picture
        torch.testing.assert_close(scale[0], torch.full_like(scale[0], 4 + 5))
        torch.testing.assert_close(scale[1], torch.full_like(scale[1], 4 + 3))
    for scale in (scales[1], scales[3]):  # words at words
        expected = torch.tensor([4 + 1, 4 + 2, 4 + 3]).double()
        torch.testing.assert_close(scale, expected.expand_as(scale))


def test_dropout_is_of_words_regions_and_attention_weights_only(model):
    rates = {name: module.p for name, module in model.named_modules() if hasattr(module, "p")}
    on = {name for name, rate in rates.items() if rate}
    assert on == {
        "dropout",
        "decoder.dropout",
        *(name for name in rates if name.endswith((".attention.dropout", ".history.dropout"))),
        *(name for name in rates if name.endswith(".picture.dropout")),
    }
    assert len(on) == 2 + 1 + 2 * 2


def test_alignment_is_switched_on_by_a_recipe_key():
    options = {**SIZES, "alignment": {"fusion": "average", "eta": 0.2}}
    model = create_model("spatial_transformer", 9, 6, options)
    assert model.decoder.layers[1].picture.config.eta == 0.2
    plain = create_model("spatial_transformer", 9, 6, SIZES)
    assert isinstance(plain.decoder.layers[1].picture, MultiHeadAttention)
