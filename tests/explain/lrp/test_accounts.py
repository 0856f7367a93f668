"""Operations in odd places: every account closes, picture by picture, or the model is refused."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from sightline.errors import NotApplicableError
from sightline.explain.gradients import (
    grad_cam,
    gradient_input,
    guided_backpropagation,
    guided_grad_cam,
)
from sightline.explain.lrp.method import lrp
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel, Unrolled
from sightline.regions import Regions
from tiny_models import REGION_DIM, VOCABULARY

B, L, D = 2, 6, 4  # pictures, places, width
BIAS, WEIGHT = torch.randn(D).double(), torch.randn(D, D).double()
TOKEN = torch.randn(1, 1, D).double()  # of a class, or a position
QUERY = torch.randn(B, 4, L, 2).double()
MASK = torch.ones(L, L, dtype=torch.bool).tril()
HIDDEN = torch.arange(L).remainder(3).eq(0)[None, :, None].expand(B, L, D)
ADDED = torch.zeros(L, L).double().masked_fill(~MASK, float("-inf"))
KERNEL_2D = torch.randn(3, 1, 2, 2).double()
KERNEL_1D, KERNEL_3D = torch.randn(3, D, 3).double(), torch.randn(3, 1, 2, 2, 2).double()


def heads(x):
    return x.unflatten(2, (2, 2)).transpose(1, 2)  # (B, 2, L, 2)


def windows(x):
    """Windows of three places along the first axis, shifted, as a Swin Transformer has them."""
    x = x.roll(1, 1).unflatten(1, (2, 3)).flatten(0, 1)  # (B x 2, 3, D)
    x = functional.linear(functional.layer_norm(x, (D,), None, BIAS), WEIGHT, BIAS)
    return x.unflatten(0, (B, 2)).flatten(1, 2)


def added_in_place(x):
    y = x * 2
    y += BIAS
    y += x
    y -= TOKEN
    return y @ WEIGHT


def half_changed_in_place(x):
    y = functional.linear(x, WEIGHT, BIAS)
    half, other_half = y.chunk(2, -1)
    half = half.mul_(3)
    return half + other_half  # of which nothing is changed


def written(x):
    y, z = x * 2, TOKEN.repeat(B, L, 1)
    y[:, 1:3], y[..., 0] = TOKEN, 3.0
    z[..., 1:] = x[..., 1:]
    z[HIDDEN] = x[HIDDEN] * 2
    return y @ WEIGHT + z


OPERATIONS = {
    "in_place_sums": added_in_place,
    "in_place_half": half_changed_in_place,
    "written": written,
    "in_place_silu_of_a_product": lambda x: functional.silu(x * 1, inplace=True),
    "in_place_silu_of_a_sum": lambda x: functional.silu(x + TOKEN, inplace=True),
    "in_place_relu_of_a_sum": lambda x: functional.relu(x + x * 2, inplace=True),
    "in_place_relu_of_a_linear_map": lambda x: (
        nn.ReLU(inplace=True)(functional.linear(x, WEIGHT, BIAS)) + TOKEN
    ),
    "in_place_relu_of_a_convolution": lambda x: functional.relu(
        functional.conv2d(x[:, None], KERNEL_2D), inplace=True
    ),
    "in_place_methods": lambda x: (
        (x @ WEIGHT).tanh_().mul_(TOKEN).relu_().masked_fill_(HIDDEN, 3.0).add_(x, alpha=2)
    ),
    "in_place_dropout": lambda x: functional.dropout(x + TOKEN, 0.5, True, inplace=True),
    "in_place_dropout_in_evaluation": lambda x: (
        functional.dropout(x + TOKEN, 0.5, False, inplace=True) @ WEIGHT
    ),
    "named_cat": lambda x: torch.cat(dim=1, tensors=[TOKEN.expand(B, -1, -1), x]) @ WEIGHT,
    "named_gelu": lambda x: functional.gelu(approximate="tanh", input=x),
    "named_linear": lambda x: functional.linear(input=x, bias=BIAS, weight=WEIGHT),
    "named_conv1d": lambda x: functional.conv1d(
        input=x.mT, weight=KERNEL_1D, padding=1, bias=BIAS[:3]
    ),
    "named_addmm": lambda x: torch.addmm(input=BIAS, mat1=x.flatten(0, 1), mat2=WEIGHT).unflatten(
        0, (B, L)
    ),
    "named_sum": lambda x: torch.add(input=TOKEN, other=torch.mul(x, other=x)),
    "named_choice": lambda x: torch.where(condition=HIDDEN, input=TOKEN, other=x),
    "chosen_by_a_method": lambda x: x.where(HIDDEN, TOKEN),
    "named_maximum": lambda x: torch.maximum(input=x, other=x @ WEIGHT),
    "named_attention": lambda x: functional.scaled_dot_product_attention(
        query=heads(x), key=heads(x), value=heads(x), is_causal=True
    ),
    "class_token": lambda x: torch.cat([TOKEN.expand(B, -1, -1), x], 1) @ WEIGHT,
    "stacked_constant": lambda x: torch.stack([x, x.new_ones(B, L, D)], 1).sum(1),
    "constant_in_a_branch": lambda x: (
        x + torch.cat([x * 2, x.new_full((B, L, D), 3.0)], 2)[..., :D]
    ),
    "positions": lambda x: x + TOKEN,
    "difference": lambda x: torch.sub(TOKEN, x, alpha=2),
    "windows": windows,
    "filled": lambda x: x.masked_fill(HIDDEN, 3.0) @ WEIGHT,
    "chosen": lambda x: torch.where(HIDDEN, TOKEN, x) @ WEIGHT,
    "chosen_signals": lambda x: torch.where(HIDDEN, x * 2, x),
    "addmm": lambda x: torch.addmm(BIAS, x.flatten(0, 1), WEIGHT).unflatten(0, (B, L)),
    "einsum_of_a_list": lambda x: torch.einsum("bld,de->ble", [x, WEIGHT]),
    "rms_norm": lambda x: functional.rms_norm(x, (D,), BIAS),
    "normalize": lambda x: functional.normalize(x, 2, -1) @ WEIGHT + BIAS,
    "gelu": lambda x: functional.gelu(x @ WEIGHT) + TOKEN,
    "silu": lambda x: functional.silu(x),
    "silu_by_hand": lambda x: torch.sigmoid(x) * x,
    "leaky_relu": lambda x: functional.leaky_relu(x),
    "dropout": lambda x: functional.dropout(x, 0.5, training=True) @ WEIGHT,
    "conv1d": lambda x: functional.conv1d(x.mT, KERNEL_1D, BIAS[:3], padding=1),
    "conv3d": lambda x: functional.conv3d(x.view(B, 1, 2, 3, D), KERNEL_3D, BIAS[:3]),
    "causal": lambda x: functional.scaled_dot_product_attention(
        heads(x), heads(x), heads(x), is_causal=True
    ),
    "boolean_mask": lambda x: functional.scaled_dot_product_attention(
        heads(x), heads(x), heads(x), MASK
    ),
    "float_mask": lambda x: functional.scaled_dot_product_attention(
        heads(x), heads(x), heads(x), ADDED
    ),
    "grouped_queries": lambda x: functional.scaled_dot_product_attention(
        QUERY, heads(x), heads(x), enable_gqa=True
    ),
    "larger_of_two": lambda x: torch.maximum(x @ WEIGHT, x),
    "attention_to_constants": lambda x: (
        x.unflatten(2, (1, D)).transpose(1, 2)
        + functional.scaled_dot_product_attention(
            x[:, None], QUERY.new_ones(B, 1, L, D), QUERY.new_ones(B, 1, L, D)
        )
    ),
}


@pytest.mark.parametrize("through_attention", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_account_closes(operation, through_attention):
    torch.manual_seed(0)
    x = torch.randn(B, L, D).double().requires_grad_()
    mode = LRPMode(B, dtype=torch.float64, through_attention=through_attention)
    torch.manual_seed(1)
    with mode:
        y = operation(x)
    torch.manual_seed(1)
    with torch.no_grad():
        torch.testing.assert_close(y, operation(x))  # (and the numbers are the model's own)
    weights = torch.randn_like(y)
    c, absorbed = torch.autograd.grad(y, [x, mode.absorbed], weights, materialize_grads=True)
    account = (c * x).flatten(1).sum(1) + absorbed.sum(0)
    torch.testing.assert_close(account, (weights * y).flatten(1).sum(1), rtol=0, atol=1e-6)
    assert (c * x).abs().sum() > 1e-3


def test_what_is_normalised_carries_the_picture():
    x = torch.randn(B, D).double().requires_grad_()
    mode = LRPMode(B, epsilon=0.0, dtype=torch.float64)
    with mode:
        y = functional.normalize(x, 2, -1)
    (c,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(c * x, y)


def test_constants_stay_constants():
    """What is absorbed must not make signals of them: a gate of them would be a product of two."""
    x, constant = torch.randn(B, 1, L, D).double(), torch.randn(B, 1, L, D).double()
    with LRPMode(B, dtype=torch.float64):
        attended = functional.scaled_dot_product_attention(constant, constant, constant)
        joined = torch.cat([constant, constant])
    assert not attended.requires_grad
    assert not joined.requires_grad
    x.requires_grad_()
    with LRPMode(B, epsilon=0.0, dtype=torch.float64):
        y = attended * x
    (c,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(c * x, y)  # all of it, not half


class Odd(CaptionModel):
    """The mean region and the words so far, joined in whatever way is tried."""

    def __init__(self, join):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.places = nn.Embedding(VOCABULARY, 4), nn.Embedding(9, 4)
        self.region, self.output = nn.Linear(REGION_DIM, 4), nn.Linear(4, VOCABULARY)
        self.join = join

    def encode(self, regions):
        return {"mean": self.region(regions.vectors).mean(1)}

    def start(self, memory, rows=1):
        raise NotImplementedError

    def step(self, tokens, state, memory):
        raise NotImplementedError

    def unroll(self, tokens, memory):
        hidden = self.join(self, tokens, memory["mean"][:, None, None])
        logits = self.output(hidden)
        return Unrolled(logits, logits[..., :5].softmax(-1), {})


def places(tokens):
    return torch.arange(tokens.shape[2], device=tokens.device).expand_as(tokens)


def asked(join):
    torch.manual_seed(1)
    regions = Regions(
        torch.randn(2, 5, REGION_DIM).double(), torch.ones(2, 5) > 0, torch.rand(2, 5, 4).double()
    )
    tokens = torch.randint(4, VOCABULARY, (2, 1, 4))
    ends = torch.tensor([[3], [2]])
    return Targets(Odd(join).double().eval(), regions, tokens, ends, ends + 4)


def explain(join, **options):
    return lrp(asked(join), **options)


@pytest.mark.parametrize(
    "look_up",
    [
        lambda model, ids: model.embedding(ids),
        lambda model, ids: torch.embedding(model.embedding.weight, ids),
        lambda model, ids: functional.embedding(input=ids, weight=model.embedding.weight),
        lambda model, ids: model.embedding.weight[ids],
    ],
)
def test_words_are_words_and_positions_are_constants_however_they_are_looked_up(look_up):
    plain = explain(lambda model, tokens, mean: model.embedding(tokens) + mean)
    placed = explain(
        lambda model, tokens, mean: look_up(model, tokens) + mean + model.places(places(tokens))
    )
    word_alone = plain.words[0, 0].nonzero().flatten().tolist()
    assert placed.words[0, 0].nonzero().flatten().tolist() == word_alone == [3]
    assert (placed.bias - plain.bias).abs().max() > 1e-3  # positions are among the constants


class Shift(torch.autograd.Function):
    """Adds what no mode sees."""

    @staticmethod
    def forward(ctx, x):
        return x + 3

    @staticmethod
    def backward(ctx, c):
        return c


def test_what_does_not_add_up_is_refused():
    with pytest.raises(NotApplicableError, match="% of a word's score is not accounted for"):
        explain(lambda model, tokens, mean: Shift.apply(model.embedding(tokens) + mean))


def shifted(h):
    part = h[..., :2]
    part += 3
    return h


def scaled(h):
    h[..., :2].mul_(3)
    return h


def shifted_part(h):
    h[..., :2] += 3
    return h


def shifted_part_of_parts(h):
    part = h.unbind(-1)[0]
    part += 3
    return h


def rectified_and_shifted(h):
    y = functional.relu(h)
    y += 3
    return y * y


def squashed_and_shifted(h):
    y = torch.tanh(h) * torch.sigmoid(h)
    y.sigmoid_().add_(1)
    return h * y


IN_PLACE = (shifted, scaled, shifted_part, shifted_part_of_parts, squashed_and_shifted)


@pytest.mark.parametrize("through_attention", [False, True])
@pytest.mark.parametrize("change", IN_PLACE)
def test_what_is_changed_through_a_view_is_refused_by_its_name(change, through_attention):
    def join(model, tokens, mean):
        return change(model.embedding(tokens) + mean)

    with pytest.raises(NotApplicableError, match="of what was changed in place"):
        explain(join, through_attention=through_attention)


def test_what_is_changed_and_then_used_no_more_is_explained():
    def in_place(model, tokens, mean):
        hidden = model.embedding(tokens)
        hidden += mean
        hidden += 3
        return functional.silu(hidden, inplace=True)

    found = explain(in_place)
    plain = explain(lambda m, tokens, mean: functional.silu(m.embedding(tokens) + mean + 3))
    for one, other in zip(found, plain, strict=True):
        torch.testing.assert_close(one, other)


METHODS = (gradient_input, grad_cam, guided_backpropagation, guided_grad_cam)


@pytest.mark.parametrize("change", [shifted, scaled, shifted_part])
def test_gradients_of_what_is_changed_through_a_view_are_right(change):
    def plainly(h):
        first, others = h[..., :2], h[..., 2:]
        first = first * 3 if change is scaled else first + 3
        return torch.cat([first, others], -1)

    found = gradient_input(asked(lambda m, ids, mean: change(m.embedding(ids) + mean.tanh())))
    plain = gradient_input(asked(lambda m, ids, mean: plainly(m.embedding(ids) + mean.tanh())))
    for one, other in zip(found[:3], plain[:3], strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (shifted_part_of_parts, "add_"),
        (squashed_and_shifted, "backward"),
        (rectified_and_shifted, "backward"),
    ],
)
def test_what_torch_has_no_gradient_of_is_refused(method, change, name):
    with pytest.raises(NotApplicableError, match=f"'{name}' meets numbers that .* in place"):
        method(asked(lambda model, tokens, mean: change(model.embedding(tokens) + mean)))


def test_logits_that_are_not_the_captioners_own_are_refused():
    def louder_every_time(model, tokens, mean):
        model.passes = getattr(model, "passes", 0) + 1
        return (model.embedding(tokens) + mean) * model.passes

    with pytest.raises(NotApplicableError, match=r"Odd: what would be explained is .* % off"):
        explain(louder_every_time)


class OddEncoder:
    """Three channels of pixels, as they come out of whatever is tried, are the regions."""

    name = "odd"

    def __init__(self, join):
        self.join = join

    def vectors(self, x):
        return self.join(x).flatten(2).mT


def pixel_relevance(join, other=None):
    torch.manual_seed(1)
    x, encoder = torch.randn(2, REGION_DIM, 2, 3).double(), OddEncoder(join)
    vectors = OddEncoder(other or join).vectors(x.clone())
    regions = Regions(vectors, torch.ones(2, 6) > 0, torch.rand(2, 6, 4).double())
    tokens = torch.randint(4, VOCABULARY, (2, 1, 4))
    ends = torch.tensor([[3], [2]])
    model = Odd(lambda model, tokens, mean: model.embedding(tokens) + mean).double().eval()
    return lrp(Targets(model, regions, tokens, ends, ends + 4, encoder, x))


@pytest.mark.parametrize(
    ("in_place", "plain"),
    [
        (lambda x: functional.silu(x * 1, inplace=True), lambda x: functional.silu(x * 1)),
        (lambda x: functional.relu(x + x * 2, inplace=True), lambda x: functional.relu(x + x * 2)),
        (lambda x: (x * 2).add_(x).add_(3), lambda x: x * 2 + x + 3),
        (lambda x: functional.gelu(input=x), functional.gelu),
        (lambda x: torch.cat(tensors=[x, x])[:2], lambda x: torch.cat([x, x])[:2]),
        (lambda x: x.sub_(1), lambda x: x - 1),
    ],
)
def test_an_encoder_that_works_in_place_is_explained_as_one_that_does_not(in_place, plain):
    found, expected = pixel_relevance(in_place), pixel_relevance(plain)
    torch.testing.assert_close(found.pixels, expected.pixels)
    assert found.pixels.abs().sum() > 1e-3


@pytest.mark.parametrize("change", IN_PLACE[:-1])
def test_an_encoder_that_changes_views_is_refused_by_its_name(change):
    with pytest.raises(NotApplicableError, match="of what was changed in place"):
        pixel_relevance(lambda x: change(x + x * 2) + 0)


def test_an_input_that_is_written_to_after_a_convolution_is_refused():
    weight = torch.randn(REGION_DIM, REGION_DIM, 1, 1).double()

    def convolved(x):
        x = x * 2
        y = functional.conv2d(x, weight)
        x[:, :, 0] = 0
        return y

    with pytest.raises(NotApplicableError, match="'conv2d' meets numbers"):
        pixel_relevance(convolved)


def test_an_encoder_of_other_regions_is_refused():
    with pytest.raises(NotApplicableError, match=r"odd: what would be explained is .* % off"):
        pixel_relevance(lambda x: x * 2, lambda x: x * 2.01)
