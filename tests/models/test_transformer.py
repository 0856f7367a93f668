import math

import pytest
import torch
from torch import nn

from sightline.errors import ConfigError
from sightline.models.interface import select_rows
from sightline.models.transformer import Transformer, TransformerConfig
from sightline.models.transformer_layers import (
    DecoderLayer,
    EncoderLayer,
    LayerOptions,
    sinusoids,
)
from sightline.regions import Regions

SIZES = {"width": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 3, "feed_forward": 12}


def create(**options):
    torch.manual_seed(0)
    return Transformer(9, 6, TransformerConfig(**{**SIZES, **options})).double().eval()


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])
    return Regions(torch.randn(2, 5, 6).double(), mask, torch.rand(2, 5, 4))


@pytest.fixture
def tokens():
    return torch.tensor([[[1, 4, 5, 6], [1, 7, 8, 4]], [[1, 8, 4, 5], [1, 5, 5, 6]]])


def test_sinusoids_are_the_printed_function():
    signal = sinusoids(torch.arange(30).double(), 6)
    for position in range(30):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert signal[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert signal[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)
    assert sinusoids(torch.tensor([1.0]), 5).shape == (1, 5)


def copy_attention(theirs: nn.MultiheadAttention, ours) -> None:
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.weight.copy_(ours.output.weight)
    theirs.out_proj.bias.zero_()


def copy_rest(theirs, ours, frames) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for number, frame in enumerate(frames, 1):
        getattr(theirs, f"norm{number}").load_state_dict(frame.norm.state_dict())


def layers(ours, theirs, norm):
    """A layer of ours and one of torch's, random in every weight."""
    torch.manual_seed(2)
    one = ours(LayerOptions(8, 2, 12, norm)).double()
    for parameter in one.parameters():
        nn.init.normal_(parameter)
    other = theirs(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "pre").double()
    return one, other


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_layer_equals_torchs(norm):
    ours, theirs = layers(EncoderLayer, nn.TransformerEncoderLayer, norm)
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.attention)
        copy_rest(theirs, ours, [ours.around_attention, ours.around_feed_forward])
    x, mask = torch.randn(2, 5, 8).double(), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    expected = theirs(x, src_key_padding_mask=~mask)
    output = ours(x, mask[:, None, None])
    torch.testing.assert_close(output[mask], expected[mask], rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_equals_torchs(norm):
    ours, theirs = layers(DecoderLayer, nn.TransformerDecoderLayer, norm)
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.history)
        copy_attention(theirs.multihead_attn, ours.picture)
        copy_rest(
            theirs, ours, [ours.around_history, ours.around_picture, ours.around_feed_forward]
        )
    words, picture = torch.randn(2, 3, 4, 8).double(), torch.randn(2, 5, 8).double()
    mask = torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    before = torch.ones(4, 4, dtype=torch.bool).tril()
    expected = theirs(
        words.flatten(0, 1),
        picture.repeat_interleave(3, 0),
        tgt_mask=~before,
        memory_key_padding_mask=~mask.repeat_interleave(3, 0),
    )
    nothing = torch.empty(2, 3, 2, 0, 4).double()
    empty = {"keys": nothing, "values": nothing}
    output = ours(words, empty, before, ours.picture.remember(picture), mask[:, None, None])
    torch.testing.assert_close(output.words.flatten(0, 1), expected, rtol=0, atol=1e-10)


def test_the_whole_is_its_parts_in_order(regions, tokens):
    """Projection and place, encoder, embedding and position, decoder, output."""
    model = create(norm="pre")
    x = model.project(regions.vectors) + model.place.linear(regions.boxes.double())
    visible = regions.mask[:, None, None]
    for layer in model.encoder:
        x = layer(x, visible)
    x = model.norm(x)
    decoder = model.decoder
    words = decoder.embedding.weight[tokens] * 8**0.5 + sinusoids(torch.arange(4).double(), 8)
    nothing = torch.empty(2, 2, 2, 0, 4).double()
    before = torch.ones(4, 4, dtype=torch.bool).tril()
    for layer in decoder.layers:
        empty = {"keys": nothing, "values": nothing}
        words = layer(words, empty, before, layer.picture.remember(x), visible).words
    logits = decoder.norm(words) @ decoder.output.T + decoder.output_bias
    torch.testing.assert_close(model(regions, tokens).logits, logits)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_final_norm_follows_pre_norm_layers_only(norm):
    model = create(norm=norm)
    assert isinstance(model.norm, nn.LayerNorm) == (norm == "pre")
    assert isinstance(model.decoder.norm, nn.LayerNorm) == (norm == "pre")


def test_words_go_on_from_a_state_one_by_one_or_several_at_once(regions, tokens):
    model = create()
    memory = model.encode(regions)
    whole = model.unroll(tokens, memory)
    state = model.step(tokens[..., 0], model.start(memory, 2), memory).state
    assert state["2.keys"].shape == (2, 2, 2, 1, 4)
    parents = torch.tensor([[1, 0], [1, 1]])
    state = select_rows(state, parents)
    rest = model.decoder(tokens[..., 1:], state, memory)
    torch.testing.assert_close(rest.logits, whole.logits[:, :, 1:])
    assert rest.state["0.values"].shape == (2, 2, 2, 4, 4)


@pytest.mark.parametrize("reported", [0, 2, -1, -2])
def test_the_reported_attention_is_the_mean_over_heads_of_one_layer(regions, tokens, reported):
    model = create(attention_layer=reported)
    unrolled = model(regions, tokens)
    maps = model.attention_maps(tokens, model.encode(regions))
    assert maps.raw.shape == (2, 2, 4, 3, 2, 5)
    assert torch.equal(maps.raw, maps.used)
    assert maps.masks is None
    torch.testing.assert_close(maps.raw.sum(-1), torch.ones(2, 2, 4, 3, 2).double())
    torch.testing.assert_close(unrolled.attention, maps.raw[:, :, :, reported].mean(3))


def test_where_regions_are_matters_only_if_they_say_so(regions, tokens):
    elsewhere = Regions(regions.vectors, regions.mask, regions.boxes.flip(1))
    model = create()
    assert not torch.allclose(model(regions, tokens).logits, model(elsewhere, tokens).logits)
    model = create(region_position="none")
    assert torch.equal(model(regions, tokens).logits, model(elsewhere, tokens).logits)


def test_tied_words_are_written_with_the_vectors_they_are_read_with(regions, tokens):
    tied = create(tie_words=True)
    assert "decoder.output" not in tied.state_dict()
    free = create()
    free.load_state_dict({**tied.state_dict(), "decoder.output": tied.decoder.embedding.weight})
    assert torch.equal(tied(regions, tokens).logits, free(regions, tokens).logits)


def test_dropout_is_on_in_training_only(regions, tokens):
    model = create().train()
    assert not torch.equal(model(regions, tokens).logits, model(regions, tokens).logits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3}, "model: 3 heads do not divide a width of 8"),
        ({"width": 0}, "model: width, heads and feed_forward must be at least 1"),
        ({"dropout": 1.0}, "model: dropout must be from 0 to below 1"),
        ({"decoder_layers": 0}, "model.decoder_layers: must be at least 1, not 0"),
        ({"encoder_layers": -1}, "model.encoder_layers: must be at least 0, not -1"),
        (
            {"attention_layer": 3},
            "model.attention_layer: there is no layer 3; the model has 3 decoder layers",
        ),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        TransformerConfig(**{**SIZES, **options})
    assert str(error.value) == message


def test_the_encoders_self_attention_is_what_it_encodes_with(regions):
    model = create()
    maps = model.self_attention(regions)
    assert maps.shape == (2, 2, 2, 5, 5)  # pictures, layers, heads, regions, regions
    torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps.sum(-1)))
    assert (maps[1][..., [2, 4]] == 0).all()  # nobody looks at what is not there
    layer = model.encoder[0]
    given = layer.around_attention.enter(model._enter(regions))
    memory = layer.attention.remember(given)
    mixed = layer.attention.collect(maps[:, 0], memory["values"])
    plain = layer.attention(given, memory, regions.mask[:, None, None]).output
    torch.testing.assert_close(mixed, plain)
