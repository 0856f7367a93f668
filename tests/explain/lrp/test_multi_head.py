"""Torch's multi-head attention: the same numbers, and every account closes."""

import pytest
import torch
from torch import Tensor, nn

from sightline.errors import NotApplicableError
from sightline.explain.gradient_mode import GradientMode
from sightline.explain.lrp.mode import LRPMode

CAUSAL = torch.ones(4, 4, dtype=torch.bool).triu(1)
ABSENT = torch.tensor([[False, False, False, True], [False] * 4])
CASES = {
    "plain": {},
    "without_weights": {"need_weights": False},
    "heads_apart": {"average_attn_weights": False},
    "causal": {"attn_mask": CAUSAL, "is_causal": True},
    "added_mask": {"attn_mask": torch.zeros(4, 4).double().masked_fill(CAUSAL, float("-inf"))},
    "mask_of_each_head": {"attn_mask": CAUSAL.expand(4, 4, 4)},
    "padded": {"key_padding_mask": ABSENT},
}


@pytest.fixture(params=[{}, {"bias": False}, {"kdim": 6, "vdim": 6}], ids=str)
def layer(request) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(6, 2, batch_first=True, **request.param).double().eval()
    return layer.requires_grad_(False)


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 4, 6).double().requires_grad_()


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_the_same_numbers_and_an_account_that_closes(options, layer, x) -> None:
    plain, looks = layer(x, x, x, **options)
    mode = LRPMode(2, dtype=torch.float64)
    with mode:
        y, moded_looks = layer(x, x, x, **options)
    torch.testing.assert_close(y, plain)
    assert (looks is None) == (moded_looks is None)
    if looks is not None:
        torch.testing.assert_close(moded_looks, looks)
    c, absorbed = torch.autograd.grad(y.sum(), [x, mode.absorbed])
    account = (c * x).flatten(1).sum(1) + absorbed.sum(0)
    torch.testing.assert_close(account, y.flatten(1).sum(1), rtol=0, atol=1e-9)
    with GradientMode():
        y = layer(x, x, x, **options)[0]
    gradients = [torch.autograd.grad(part.square().sum(), x)[0] for part in (y, plain)]
    torch.testing.assert_close(*gradients)


def test_a_decoder_of_torchs_layers(x) -> None:
    layer = nn.TransformerDecoderLayer(6, 2, 8, batch_first=True).double().eval()
    layer.requires_grad_(False)
    plain, mode = layer(x, x), LRPMode(2, dtype=torch.float64)
    with mode:
        y = layer(x, x)
    torch.testing.assert_close(y, plain)
    c, absorbed = torch.autograd.grad(y[..., 0].sum(), [x, mode.absorbed])
    account = (c * x).flatten(1).sum(1) + absorbed.sum(0)
    torch.testing.assert_close(account, y[..., 0].sum(1), rtol=0, atol=1e-9)


def test_further_keys_are_refused_by_name(x) -> None:
    layer = nn.MultiheadAttention(6, 2, add_bias_kv=True, batch_first=True).double()
    with LRPMode(), pytest.raises(NotApplicableError, match="'multi_head_attention_forward with"):
        layer(x, x, x)
