import math

import pytest
import torch

from sightline.errors import ConfigError
from sightline.models.aligned_transformer import AlignedTransformer, AlignedTransformerConfig
from sightline.models.alignment import (
    AlignedAttention,
    AlignmentConfig,
    mean_mask,
    perturbation,
)
from sightline.models.attention import MultiHeadAttention
from sightline.models.spatial_transformer import SpatialTransformer, SpatialTransformerConfig
from sightline.models.transformer import Transformer, TransformerConfig
from sightline.regions import Regions

REGIONS, WORDS, WIDTH, HEADS = 4, 3, 6, 2
SIZES = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 12}
FUSIONS = ["max", "average", "decay", "gate"]


def create_attention(**options):
    torch.manual_seed(0)
    inner = MultiHeadAttention(WIDTH, HEADS)
    aligned = AlignedAttention(inner, WIDTH, HEADS, AlignmentConfig(**options)).double()
    with torch.no_grad():  # far enough from nothing that masks and gates differ
        for parameter in aligned.parameters():
            parameter.mul_(2)
    return aligned


@pytest.fixture
def inputs():
    torch.manual_seed(1)
    x, places = torch.randn(2, WORDS, WIDTH).double(), torch.randn(2, REGIONS, WIDTH).double()
    visible = torch.tensor([[True] * 4, [True, False, True, False]])[:, None, None]
    return x, places, visible


def numbers(look):
    """α, m and what was used, number by number."""
    shape = look.raw.shape
    for index in torch.cartesian_prod(*(torch.arange(size) for size in shape)).tolist():
        b, h, q, i = index
        yield (b, h, q, i), *(t[b, h, q, i].item() for t in (look.raw, look.mask, look.used))


@pytest.mark.parametrize("steps", [0, 30_000])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_each_fusion_is_its_equation(inputs, fusion, steps):
    """Eq. 5-10, in scalars."""
    x, places, visible = inputs
    attention = create_attention(fusion=fusion, eta=0.3, temperature=20_000)
    attention.steps.fill_(steps)
    look = attention(x, attention.remember(places), visible)
    d = WIDTH // HEADS
    for (b, h, q, _), alpha, m, used in numbers(look):
        alpha_m = alpha * math.exp(1 - m)
        if fusion == "max":
            expected = max(alpha, alpha_m)
            assert expected == alpha_m
        elif fusion == "average":
            expected = alpha + 0.3 * alpha_m
        elif fusion == "decay":
            share = math.exp(-steps / 20_000)
            expected = share * alpha + (1 - share) * alpha_m
        else:
            query = attention.attention.query.weight[h * d : (h + 1) * d] @ x[b, q] / d**0.5
            score = query @ attention.gate[h, :, 0] + attention.gate_bias[h, 0, 0]
            gate = 1 / (1 + math.exp(-score.item()))
            assert look.gate[b, h, q].item() == pytest.approx(gate, abs=1e-12)
            expected = gate * alpha + (1 - gate) * alpha_m
        assert used == pytest.approx(expected, abs=1e-12)
    assert 0.2 < float(look.mask.std() * 4) < 4  # masks that say something


@pytest.mark.parametrize("average", ["uniform", "head_mean"])
def test_perturbation_is_its_equation(inputs, average):
    """Eq. 3, in scalars; regions that are not there have no part in ᾱ."""
    x, places, visible = inputs
    attention = create_attention(average=average)
    look = attention.perturbed(x, attention.remember(places), visible)
    for (b, _, q, i), alpha, m, used in numbers(look):
        there = visible[b, 0, 0]
        if average == "uniform":
            mean = float(there[i]) / int(there.sum())
        else:
            mean = sum(look.raw[b, head, q, i].item() for head in range(HEADS)) / HEADS
        assert used == pytest.approx(m * alpha + (1 - m) * mean, abs=1e-12)
        assert there[i] or used == 0


def test_masks_are_a_projection_pair_of_each_head(inputs):
    x, places, visible = inputs
    attention = create_attention()
    mask = attention.mask(x, attention.remember(places), visible)
    d, net = WIDTH // HEADS, attention.mask
    for h in range(HEADS):
        rows = slice(h * d, (h + 1) * d)
        query, key = net.query(x[1, 2])[rows], net.key(places[1, 3])[rows]
        expected = torch.sigmoid(query @ key / d**0.5)
        torch.testing.assert_close(mask[1, h, 2, 3], expected)


def test_linear_masks_have_one_row_for_each_region_in_turn(inputs):
    x, _, visible = inputs
    attention = create_attention(mask="linear", regions=REGIONS)
    mask = attention.mask(x, {}, visible)
    weight = attention.mask.linear.weight.view(HEADS, REGIONS, WIDTH)
    bias = attention.mask.linear.bias.view(HEADS, REGIONS)
    for b, numbered in enumerate(([(0, 0), (1, 1), (2, 2), (3, 3)], [(0, 0), (2, 1)])):
        for h in range(HEADS):
            for region, row in numbered:  # the second picture's third region is its second
                expected = torch.sigmoid(weight[h, row] @ x[b, 1] + bias[h, row])
                torch.testing.assert_close(mask[b, h, 1, region], expected)


@pytest.mark.parametrize("regions", [3, 5])
def test_linear_masks_refuse_another_number_of_regions(inputs, regions):
    x, places, visible = inputs
    attention = create_attention(mask="linear", regions=regions)
    with pytest.raises(ConfigError, match=rf"alignment.regions: {regions}, but pictures have 4 "):
        attention(x, attention.remember(places), visible)


@pytest.mark.parametrize("mask", [0.0, 1.0])
def test_a_mask_of_one_perturbs_nothing_and_of_zero_everything(inputs, mask):
    x, places, visible = inputs
    attention = create_attention(mask="linear", regions=REGIONS)
    with torch.no_grad():
        attention.mask.linear.weight.zero_()
        attention.mask.linear.bias.fill_(1000.0 if mask else -1000.0)
    memory = attention.remember(places)
    look = attention.perturbed(x, memory, visible)
    uniform = (visible / visible.sum(-1, keepdim=True)).double().expand_as(look.raw)
    torch.testing.assert_close(look.used, look.raw if mask else uniform)
    if mask:
        plain = attention.attention(x, memory, visible)
        torch.testing.assert_close(look.output, plain.output)


def test_mean_mask_and_penalty_leave_out_regions_that_are_not_there(inputs):
    _, _, visible = inputs
    mask = torch.rand(2, HEADS, WORDS, REGIONS).double()
    for b, there in enumerate(([0, 1, 2, 3], [0, 2])):
        for q in range(WORDS):
            heads = [[float(mask[b, h, q, i]) for i in there] for h in range(HEADS)]
            mean = sum(sum(head) / len(there) for head in heads) / HEADS
            norm = sum(sum((1 - m) ** 2 for m in head) for head in heads) / HEADS
            assert float(mean_mask(mask, visible)[b, q]) == pytest.approx(mean)
            assert float(perturbation(mask, visible)[b, q]) == pytest.approx(norm)


def make_regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True] * 5, [True, True, False, True, True]])
    return Regions(torch.randn(2, 5, 6).double(), mask, torch.rand(2, 5, 4))


TOKENS = torch.tensor([[[1, 4, 5, 6], [1, 7, 8, 4]], [[1, 8, 4, 5], [1, 5, 5, 6]]])


def create(name="aligned", **alignment):
    torch.manual_seed(0)
    config = AlignmentConfig(**alignment)
    if name == "spatial":
        sizes = SpatialTransformerConfig(**SIZES, dropout=0.0, alignment=config)
        return SpatialTransformer(9, 6, sizes).double()
    sizes = AlignedTransformerConfig(**SIZES, dropout=0.0, alignment=config)
    return AlignedTransformer(9, 6, sizes).double()


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {
        name: parameter.grad is not None and bool(parameter.grad.any())
        for name, parameter in model.named_parameters()
    }


@pytest.mark.parametrize("name", ["aligned", "spatial"])
@pytest.mark.parametrize(
    "options",
    [*({"fusion": fusion} for fusion in FUSIONS), {"mask": "linear", "regions": 5}],
    ids=str,
)
def test_neither_player_receives_the_others_gradient(name, options):
    model = create(name, **options)
    for aligned in model.modules():
        if isinstance(aligned, AlignedAttention):
            aligned.steps.fill_(50_000)
    passes = model(make_regions(), TOKENS, perturb=True)
    learns = gradients(model, passes.aligned.logits.square().sum())
    assert {n for n, yes in learns.items() if not yes} == {n for n in learns if ".mask." in n}

    passes = model(make_regions(), TOKENS, perturb=True)
    loss = passes.perturbed.logits.square().sum() + passes.perturbed.signals["penalty"].sum()
    learns = gradients(model, loss)
    assert {n for n, yes in learns.items() if yes} == {n for n in learns if ".mask." in n}


def test_the_mask_networks_gradient_is_that_of_the_perturbed_pass_as_a_whole():
    """Masks of lower layers reach the masks of higher ones too: against finite differences."""
    model = create()
    regions, direction = make_regions(), torch.randn(2, 2, 4, 9).double()

    def loss():
        passes = model(regions, TOKENS, perturb=True)
        return (passes.perturbed.logits * direction).sum()

    gradients(model, loss())
    for layer in model.decoder.layers:
        weight = layer.picture.mask.key.weight
        expected = float(weight.grad[1, 2])
        with torch.no_grad():
            weight[1, 2] += 1e-5
            above = float(loss())
            weight[1, 2] -= 2e-5
            below = float(loss())
            weight[1, 2] += 1e-5
        assert expected == pytest.approx((above - below) / 2e-5, rel=1e-5)
        assert abs(expected) > 1e-6


def test_decay_starts_from_the_plain_transformer_exactly():
    aligned = create(fusion="decay").eval()
    plain = Transformer(9, 6, TransformerConfig(**SIZES)).double().eval()
    names = plain.state_dict().keys()
    weights = {
        name.replace("picture.attention", "picture"): tensor
        for name, tensor in aligned.state_dict().items()
    }
    plain.load_state_dict({name: weights[name] for name in names})
    expected, unrolled = plain(make_regions(), TOKENS), aligned(make_regions(), TOKENS)
    torch.testing.assert_close(unrolled.logits, expected.logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(unrolled.attention, expected.attention, rtol=0, atol=1e-12)
    for layer in aligned.decoder.layers:
        layer.picture.steps.fill_(50_000)
    assert not torch.allclose(aligned(make_regions(), TOKENS).logits, expected.logits)


def test_steps_of_the_mask_network_are_counted_in_training_and_stored():
    model = create(fusion="decay")
    for _ in range(3):
        model(make_regions(), TOKENS, perturb=True)
    model(make_regions(), TOKENS)
    model.eval()(make_regions(), TOKENS, perturb=True)
    stored = model.state_dict()
    assert [int(stored[f"decoder.layers.{i}.picture.steps"]) for i in range(2)] == [3, 3]


def test_without_perturbation_the_pass_is_the_aligned_one():
    model = create()
    passes, alone = model(make_regions(), TOKENS, perturb=True), model(make_regions(), TOKENS)
    assert torch.equal(passes.aligned.logits, alone.logits)
    assert not torch.allclose(passes.perturbed.logits, alone.logits)
    assert alone.signals.keys() == {"mask", "gate"}
    assert passes.perturbed.signals.keys() == {"mask", "penalty"}


def test_all_maps_hold_attention_before_and_after_alignment():
    model = create()
    memory = model.encode(make_regions())
    maps = model.attention_maps(TOKENS, memory)
    assert maps.raw.shape == maps.used.shape == maps.masks.shape == (2, 2, 4, 2, 2, 5)
    mean = (maps.masks * make_regions().mask[:, None, None, None, None]).sum(-1)
    mean = mean / make_regions().mask.sum(-1)[:, None, None, None, None]
    signal = model.unroll(TOKENS, memory).signals["mask"]
    torch.testing.assert_close(signal, mean.mean((-2, -1)))
    torch.testing.assert_close(maps.raw.sum(-1), torch.ones(2, 2, 4, 2, 2).double())
    assert (maps.used.sum(-1) > 1).all()
    reported = maps.used[:, :, :, 0].mean(3)
    reported = reported / reported.sum(-1, keepdim=True)
    torch.testing.assert_close(model.unroll(TOKENS, memory).attention, reported)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": "linear"}, "model.alignment: 'regions' is required for mask: linear"),
        ({"regions": 5}, "model.alignment: 'regions' is required for mask: linear"),
        ({"mask": "linear", "regions": 0}, "model.alignment.regions: must be at least 1, not 0"),
        ({"eta": -1.0}, "model.alignment.eta: must be at least 0, not -1.0"),
        ({"temperature": 0.0}, "model.alignment.temperature: must be above 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        AlignmentConfig(**options)
    assert str(error.value).startswith(message)
