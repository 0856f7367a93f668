"""Operations in odd places: every account closes, picture by picture, or the model is refused."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from sightline.errors import NotApplicableError
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
KERNEL_1D, KERNEL_3D = torch.randn(3, D, 3).double(), torch.randn(3, 1, 2, 2, 2).double()


def heads(x):
    return x.unflatten(2, (2, 2)).transpose(1, 2)  # (B, 2, L, 2)


def windows(x):
    """Windows of three places along the first axis, shifted, as a Swin Transformer has them."""
    x = x.roll(1, 1).unflatten(1, (2, 3)).flatten(0, 1)  # (B x 2, 3, D)
    x = functional.linear(functional.layer_norm(x, (D,), None, BIAS), WEIGHT, BIAS)
    return x.unflatten(0, (B, 2)).flatten(1, 2)


OPERATIONS = {
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


def explain(join):
    torch.manual_seed(1)
    regions = Regions(
        torch.randn(2, 5, REGION_DIM).double(), torch.ones(2, 5) > 0, torch.rand(2, 5, 4).double()
    )
    tokens = torch.randint(4, VOCABULARY, (2, 1, 4))
    ends = torch.tensor([[3], [2]])
    return lrp(Targets(Odd(join).double().eval(), regions, tokens, ends, ends + 4))


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


def test_what_does_not_add_up_is_refused():
    def written_into(model, tokens, mean):
        hidden = model.embedding(tokens) + mean
        buffer = torch.full_like(hidden, 3.0)
        buffer[..., :2] = hidden[..., :2]  # the rest is a constant that no rule sees
        return buffer

    with pytest.raises(NotApplicableError, match="% of a word's score is not accounted for"):
        explain(written_into)
