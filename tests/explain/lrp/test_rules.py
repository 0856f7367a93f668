"""The rules one by one, against the formulas they come from."""

import operator

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from sightline.encoders.efficientnet_lite import EfficientNetLite
from sightline.encoders.encoder import create_encoder
from sightline.encoders.folding import fold_batch_norms
from sightline.encoders.resnet import ResNet
from sightline.encoders.vgg import VGG
from sightline.errors import NotApplicableError
from sightline.explain.gradient_mode import GuidedMode
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.lrp.rules import softmax_rule
from sightline.models.layers import lstm


def backward(network, x, epsilon=0.01, pick=None):
    """R of the input, of the output, and what constants and ε absorbed."""
    x = x.clone().requires_grad_()
    mode = LRPMode(len(x), epsilon, x.dtype)
    with mode:
        y = network(x)
    start = torch.ones_like(y) if pick is None else pick(y)
    c, absorbed = torch.autograd.grad(y, [x, mode.absorbed], start, materialize_grads=True)
    return (c * x).detach(), (start * y).detach(), absorbed


def stab(z, epsilon=0.01):
    return z + np.where(z >= 0, epsilon, -epsilon)


def test_an_lstm_leaves_its_gates_nothing():
    """Arras et al. 2017, in NumPy: three steps of an LSTM over words, then a linear map."""
    rng = np.random.default_rng(0)
    n, width, steps = 4, 3, 3
    gates, bias = rng.normal(size=(4 * n, width + n)), rng.normal(size=4 * n) * 0.3
    output, words = rng.normal(size=n), rng.normal(size=(steps, width))

    def run(words):
        hidden = cell = words.new_zeros(1, n)
        weight, offset = torch.from_numpy(gates), torch.from_numpy(bias)
        for word in words.unbind(1):
            sums = functional.linear(torch.cat([word, hidden], -1), weight, offset)
            hidden, cell = lstm(sums, cell)
        return functional.linear(hidden, torch.from_numpy(output[None]))

    found, logit, _ = backward(run, torch.from_numpy(words)[None])

    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    hidden, cell, past = np.zeros(n), np.zeros(n), []
    for word in words:
        entering = np.concatenate([word, hidden])
        z = gates @ entering + bias
        i, f, o = (sigmoid(z[k * n : (k + 1) * n]) for k in range(3))
        g = z[3 * n :]
        new, kept = i * np.tanh(g), f * cell
        cell = kept + new
        hidden = o * np.tanh(cell)
        past.append((entering, g, new, kept, cell))
    score = output @ hidden
    assert logit.item() == pytest.approx(score)
    r_hidden, r_cell = output * hidden / stab(score) * score, np.zeros(n)
    relevance = np.zeros_like(words)
    for t in reversed(range(steps)):
        entering, g, new, kept, cell = past[t]
        r_cell = r_cell + r_hidden
        r_g = new / stab(cell) * r_cell
        r_cell = kept / stab(cell) * r_cell
        r_entering = (gates[3 * n :] * entering / stab(g)[:, None] * r_g[:, None]).sum(0)
        relevance[t], r_hidden = r_entering[:width], r_entering[width:]
    np.testing.assert_allclose(found[0].numpy(), relevance, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (3, 2, 1), (1, 1, 0)])
@pytest.mark.parametrize("rectifier", [None, functional.relu, functional.relu6])
@pytest.mark.parametrize("positive", [True, False])
def test_convolutions_follow_alpha_beta(groups, kernel, stride, padding, rectifier, positive):
    """R_j = Σ_k (x_j w_jk)⁺ / (b_k⁺ + Σ_j (x_j w_jk)⁺) R_k, in a plain loop."""
    torch.manual_seed(0)
    layer = nn.Conv2d(4, 6, kernel, stride, padding, groups=groups).double().requires_grad_(False)
    x = torch.randn(2, 4, 5, 5).double() * 3
    x = x.abs() if positive else x
    network = layer if rectifier is None else lambda x: rectifier(layer(x))
    found, start, absorbed = backward(network, x)

    expected = torch.zeros_like(functional.pad(x, [padding] * 4))
    padded, losses = functional.pad(x, [padding] * 4), torch.zeros(2).double()
    for b, k, row, column in np.ndindex(*start.shape):
        first = k // (6 // groups) * (4 // groups)
        patch = (
            b,
            slice(first, first + 4 // groups),
            slice(row * stride, row * stride + kernel),
            slice(column * stride, column * stride + kernel),
        )
        parts = (padded[patch] * layer.weight[k]).clamp(min=0)
        bias = layer.bias[k].clamp(min=0)
        raising, relevance = parts.sum() + bias, start[b, k, row, column]
        if raising > 0:
            expected[patch] += parts / raising * relevance
            losses[b] += bias / raising * relevance
        else:
            losses[b] += relevance
    inner = slice(padding, padding + 5)
    torch.testing.assert_close(found, expected[:, :, inner, inner])
    torch.testing.assert_close(absorbed[0], losses)
    assert (absorbed[1] == 0).all()


def test_convolutions_that_feed_one_another_are_pulled_as_if_they_were_apart():
    """In one step where a rectifier is all that stands between; `apart`, a copy does, too."""
    torch.manual_seed(0)
    first, depthwise = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 5, padding=(2, 1), groups=6)
    layers = [layer.requires_grad_(False).double() for layer in (first, depthwise)]
    last = nn.Conv2d(6, 4, 3, 2).requires_grad_(False).double()

    def network(x, between):
        for layer in layers:
            x = between(functional.relu6(layer(x)))
        # Two that are fed by the same output, which is itself part of the sum.
        return last(x) + last(x) + functional.max_pool2d(x, 3, 2)[:, :4]

    x = torch.randn(2, 3, 7, 9).double() * 3
    together, apart = (
        backward(lambda x: network(x, lambda y: y), x),
        backward(lambda x: network(x, torch.clone), x),
    )
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one, other)
    found, start, absorbed = together
    torch.testing.assert_close(found.sum() + absorbed.sum(), start.sum())
    assert found.abs().sum() > 0


def test_padding_keeps_nothing():
    x = torch.randn(2, 3, 4, 5).double()
    weight = torch.rand(7, 8).double()
    found, start, absorbed = backward(lambda x: functional.pad(x, (1, 2, 3, 0)) * weight, x)
    torch.testing.assert_close(found, x * weight[3:, 1:6])
    assert start.shape == (2, 3, 7, 8)
    assert (absorbed == 0).all()


def test_a_rectifier_that_is_not_right_after_the_convolution_counts_too():
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 4, 3).requires_grad_(False).double()
    x = torch.randn(1, 3, 6, 6).double()
    found, start, absorbed = backward(lambda x: functional.relu6(layer(x) * 4 + layer(x)), x, 0.0)
    torch.testing.assert_close(found.sum() + absorbed.sum(), start.sum())


def test_rectifiers_pass_all_relevance_even_where_they_are_flat():
    x = torch.tensor([[-1.0, 0.0, 2.0, 9.0]]).double()
    assert backward(functional.relu6, x)[0].tolist() == [[0, 0, 2, 6]]
    torch.testing.assert_close(backward(torch.tanh, x)[0], torch.tanh(x))


def test_pooling_goes_to_the_winner_and_means_to_all_by_share():
    x = torch.tensor([[[[1.0, 5.0], [2.0, 4.0]]]])
    assert backward(lambda x: functional.max_pool2d(x, 2), x)[0].flatten().tolist() == [0, 5, 0, 0]
    found = backward(lambda x: x.mean((2, 3)), x, epsilon=0.0)[0]
    assert found.flatten().tolist() == [0.25, 1.25, 0.5, 1.0]


def test_sums_split_by_share_and_constants_absorb_theirs():
    x = torch.tensor([[2.0]]).double()
    for network in (lambda x: x + 3, lambda x: 3 + x, lambda x: x - -3, lambda x: 3 - (-x)):
        found, _, absorbed = backward(network, x, epsilon=1.0)
        assert found.item() == pytest.approx(2 * 5 / 6 * (2 / 2))
        assert absorbed.flatten().tolist() == pytest.approx([3 * 5 / 6, 5 / 6])


def test_products_of_signals_share_equally_and_of_a_gate_the_signal_takes_all():
    x = torch.tensor([[2.0, -3.0]]).double()
    torch.testing.assert_close(backward(lambda x: x * x, x)[0], x * x)
    torch.testing.assert_close(backward(lambda x: torch.sigmoid(x) * x, x)[0], torch.sigmoid(x) * x)
    gated = functional.softmax(x, -1) * x
    torch.testing.assert_close(backward(lambda x: x * functional.softmax(x, -1), x)[0], gated)
    torch.testing.assert_close(backward(lambda x: x / x, x)[0], torch.ones(1, 2).double())


@pytest.mark.parametrize(
    "product",
    [
        lambda x, w: x @ w,
        lambda x, w: torch.bmm(x, w.expand(2, -1, -1)),
        lambda x, w: torch.einsum("bij,jk->bik", x, w),
        lambda x, w: (x.movedim(1, 2).mT.view_as(x).flip(1).flip(1)) @ w,
        # Pictures and words along one axis, as layers of torch often want them.
        lambda x, w: functional.linear(x.flatten(0, 1), w.T).view(2, 3, 5),
    ],
)
def test_ways_to_write_a_linear_map_are_one(product):
    torch.manual_seed(0)
    x, weight = torch.randn(2, 3, 4).double(), torch.randn(4, 5).double()
    plain = backward(lambda x: functional.linear(x, weight.T), x)
    for one, other in zip(backward(lambda x: product(x, weight), x), plain, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (lambda x: x.max(1).values, "max"),
        (lambda x: torch.topk(x, 2)[0], "topk"),
        (lambda x: torch.exp(x), "exp"),
        (lambda x: 1 / x, "__rdiv__"),
        (lambda x: [y := x * 1, y.add_(1), y * 2][-1], "mul of what was changed in place"),
        (lambda x: [y := x * 1, operator.iadd(y, 1), y + 2][-1], "add of what was changed"),
        (lambda x: torch.div(torch.ones_like(x), x), "div"),
        (lambda x: torch.add(x, x2=x), "add with named tensors"),  # (as NumPy has it)
        (lambda x: torch.add(x, x2=torch.ones(2, 3)), "add with named tensors"),
        (lambda x: torch.tanh(x=x), "tanh with named tensors"),
        (lambda x: (x * 1).unsqueeze_(1), "unsqueeze_"),
        (lambda x: (x * 1).copy_(x), "copy_"),
        (lambda x: functional.linear(x, x * 2), "linear whose weights are made of the picture"),
        (lambda x: functional.softplus(x), "softplus"),
        (lambda x: x.masked_fill(x > 1.5, float("-inf")), "masked_fill with -inf"),
        (lambda x: x.masked_fill(x > 1.5, x[0, 0]), "masked_fill with a number of the picture"),
        (lambda x: torch.einsum("bi,bi,bi->b", x, x, x), "einsum"),
        (lambda x: functional.pad(x, (1, 1), value=2.0), "pad"),
        (lambda x: functional.layer_norm(x, (2, 3)), "layer_norm"),
        (
            lambda x: functional.conv2d(x[None, None], x.new_ones(1, 1, 3, 3), padding="same"),
            "conv2d with padding 'same'",
        ),
        (lambda x: functional.linear(x.T, x.new_ones(1, 2)), "an operation whose first axis is n"),
    ],
)
def test_what_has_no_rule_is_refused_by_its_name(operation, name):
    x = torch.rand(2, 3).double() + 1
    with pytest.raises(NotApplicableError, match=f"no rule for '{name}"):
        backward(operation, x)


def test_fused_attention_takes_every_kind_of_mask():
    torch.manual_seed(0)
    x, causal = torch.randn(1, 2, 4, 3).double(), torch.ones(4, 4, dtype=torch.bool).tril()
    added = torch.zeros(4, 4).double().masked_fill(~causal, float("-inf"))
    for options in ({}, {"is_causal": True}, {"attn_mask": causal}, {"attn_mask": added}):
        plain = functional.scaled_dot_product_attention(x, x, x, **options)
        with LRPMode():
            moded = functional.scaled_dot_product_attention(x, x, x, **options)
        torch.testing.assert_close(moded, plain)


def test_fused_attention_weighs_by_constants():
    torch.manual_seed(0)
    x, mask = torch.randn(1, 2, 4, 3).double(), torch.ones(4, 4, dtype=torch.bool).tril()

    def attend(x):
        return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    found, start, _ = backward(attend, x, epsilon=0.0)
    energy = (x @ x.transpose(2, 3) / 3**0.5).masked_fill(~mask, float("-inf"))
    weights = energy.softmax(-1)
    torch.testing.assert_close(start, weights @ x)
    torch.testing.assert_close(found, weights.transpose(2, 3) @ torch.ones_like(x) * x)


def test_layer_norm_is_linear_for_its_own_deviation():
    torch.manual_seed(0)
    norm = nn.LayerNorm(5).double().requires_grad_(False)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = torch.randn(3, 5).double()
    found, start, absorbed = backward(norm, x)
    torch.testing.assert_close(start, norm(x))
    torch.testing.assert_close(found.sum(1) + absorbed[0], start.sum(1))
    torch.testing.assert_close(absorbed[0], norm.bias.sum().expand(3))


@pytest.mark.parametrize(
    "rectify",
    [functional.relu, lambda x: torch.relu_(x * 1), lambda x: functional.relu6(x * 1, True)],
)
def test_guided_gradients_are_positive_behind_every_rectifier(rectify):
    x = torch.tensor([1.0, 1.0, -1.0], requires_grad=True)
    with GuidedMode():
        y = rectify(x)
    c = torch.tensor([2.0, -2.0, 2.0])
    assert torch.autograd.grad(y, x, c)[0].tolist() == [2, 0, 0]


def lively(network):
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.bias, 0, 0.2)
    return fold_batch_norms(network.eval()).requires_grad_(False).double()


@pytest.mark.parametrize(
    ("make", "stage"),
    [
        (lambda: EfficientNetLite(0), "head"),
        (lambda: ResNet(50), "stage5"),
        (lambda: VGG(16, head=False), "stage5"),
    ],
)
def test_whole_encoders_conserve_relevance(make, stage):
    torch.manual_seed(0)
    network = lively(make())
    x = torch.randn(2, 3, 32, 32).double()
    plain = network.stage(x, stage)
    found, start, absorbed = backward(
        lambda x: network.stage(x, stage), x, pick=lambda y: y > y.mean()
    )
    torch.testing.assert_close(start, plain * (plain > plain.mean()))
    total = start.flatten(1).sum(1)
    torch.testing.assert_close(found.flatten(1).sum(1) + absorbed.sum(0), total)
    assert (found.flatten(1).abs().sum(1) > 0).all()


def test_the_trained_encoder_conserves_relevance(examples):
    encoder = create_encoder("efficientnet_lite0", size=96)
    pixels = torch.from_numpy(encoder.preprocessing.load(examples / "cat.jpg")[0])[None]
    found, start, absorbed = backward(encoder.features, encoder.normalise(pixels))
    assert found.sum() + absorbed.sum() == pytest.approx(start.sum().item(), rel=1e-4)


def test_the_softmax_rule_is_its_gradient_and_absorbs_the_rest():
    x = torch.randn(2, 3, 5).double()
    x[1, 2, 3] = -torch.inf
    x.requires_grad_()
    absorbed = torch.zeros(2, 2).double().requires_grad_()
    y = softmax_rule(x, x.softmax(-1), -1, absorbed)
    weights = torch.randn_like(y)
    c, lost = torch.autograd.grad(y, (x, absorbed), weights)
    (gradient,) = torch.autograd.grad(x.softmax(-1), x, weights)
    torch.testing.assert_close(c, gradient)
    arrived = (c * x.detach().masked_fill(x == -torch.inf, 0)).sum((1, 2))
    torch.testing.assert_close(arrived + lost[0], (weights * y).sum((1, 2)))
    assert (lost[1] == 0).all()


def test_through_attention_either_factor_of_a_product_has_half():
    """Achtibat et al. 2024, by hand: of Σ a v, and of q · k, and the softmax between them."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 3).double().requires_grad_() for n in (4, 5, 5))
    mode = LRPMode(1, epsilon=0.0, dtype=torch.float64, through_attention=True)
    with mode:
        y = functional.scaled_dot_product_attention(q, k, v)
    start = torch.randn_like(y)
    multipliers = torch.autograd.grad(y, [q, k, v], start)
    scale = 3**-0.5
    a = (q @ k.mT * scale).softmax(-1)
    of_a = start / 2 @ v.mT
    of_energy = a * (of_a - (a * of_a).sum(-1, keepdim=True)) / 2
    expected = [of_energy @ k * scale, of_energy.mT @ q * scale, a.mT @ start / 2]
    for c, by_hand in zip(multipliers, expected, strict=True):
        torch.testing.assert_close(c, by_hand)
