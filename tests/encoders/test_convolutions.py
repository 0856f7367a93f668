"""What oneDNN does in one pass is what the parts of a network do one after another."""

import copy

import pytest
import torch
from torch import nn

from sightline.encoders import convolutions
from sightline.encoders.activations import ReLU, ReLU6
from sightline.encoders.convolutions import DepthwiseConv2d, SamePadding, through
from sightline.encoders.efficientnet_lite import EfficientNetLite
from sightline.encoders.folding import fold_batch_norms
from sightline.encoders.resnet import ResNet
from sightline.encoders.vgg import VGG

with torch.inference_mode():
    FUSES = convolutions._can_fuse(torch.ones(1))

pytestmark = pytest.mark.skipif(not FUSES, reason="this processor goes through part by part")


def refuse(*_):
    raise AssertionError("a pass of its own over the feature map")


def part_by_part(x, parts, added=None):
    with torch.no_grad():
        return through(x, parts, added)


def assert_same(one, other, tolerance=1e-5):
    assert one.shape == other.shape
    assert 0 < other.norm() < float("inf")  # (random weights make small numbers)
    assert (one - other).norm() / other.norm() < tolerance


@pytest.mark.parametrize("size", [64, 65, 66, 67])  # paddings with and without an odd pixel
@pytest.mark.parametrize("pictures", [1, 3])
@pytest.mark.parametrize(
    ("make", "stage"),
    [
        (lambda: fold_batch_norms(EfficientNetLite(0).eval()), "head"),
        (lambda: EfficientNetLite(0).eval(), "stage4"),
        (lambda: fold_batch_norms(ResNet(50).eval()), "stage3"),
        (lambda: VGG(11, head=False).eval(), "stage2"),
    ],
    ids=["folded", "unfolded", "resnet", "vgg"],
)
def test_a_network_computes_the_same_in_one_pass_of_each_layer(make, stage, pictures, size):
    torch.manual_seed(0)
    network = make().to(memory_format=torch.channels_last)
    x = torch.randn(pictures, 3, size, size).to(memory_format=torch.channels_last)
    before = x.clone()
    with torch.no_grad():
        plain = network.stage(x, stage)
    with torch.inference_mode():
        for _ in range(2):
            assert_same(network.stage(x, stage), plain)
    assert torch.equal(x, before)


def test_neither_padding_nor_rectifier_nor_sum_passes_over_the_features_again(monkeypatch):
    torch.manual_seed(0)
    padded = [SamePadding(3, 2), DepthwiseConv2d(8, 8, 3, 2, groups=8), nn.Identity(), ReLU6()]
    parts = [nn.Conv2d(8, 8, 1), ReLU(), *padded, nn.Conv2d(8, 8, 1)]
    x, added = 4 * torch.randn(2, 8, 10, 10), torch.randn(2, 8, 5, 5)
    expected = part_by_part(x, parts, added)
    for kind in (SamePadding, ReLU, ReLU6, nn.Conv2d, DepthwiseConv2d):
        monkeypatch.setattr(kind, "forward", refuse)
    kept = added.clone()
    with torch.inference_mode():
        assert_same(through(x, parts, added), expected)
    assert torch.equal(added, kept)


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="no bfloat16 in oneDNN here"
)
def test_so_it_is_under_autocast_in_bfloat16(monkeypatch):
    torch.manual_seed(0)
    padded = [SamePadding(3, 2), DepthwiseConv2d(8, 8, 3, 2, groups=8), ReLU6()]
    parts = [nn.Conv2d(8, 8, 1), *padded, nn.Conv2d(8, 8, 1)]
    x, added = 4 * torch.randn(2, 8, 10, 10), torch.randn(2, 8, 5, 5)
    expected = part_by_part(x, parts, added)
    with torch.autocast("cpu", torch.bfloat16):
        in_parts = part_by_part(x, parts, added)
        for kind in (SamePadding, ReLU6, nn.Conv2d, DepthwiseConv2d):
            monkeypatch.setattr(kind, "forward", refuse)
        with torch.inference_mode():
            fused = through(x, parts, added)
            assert fused.dtype == torch.bfloat16
            assert torch.equal(through(x.bfloat16(), parts, added), fused)
    assert_same(fused, expected, 0.02)
    assert_same(fused, in_parts, 0.02)
    with torch.inference_mode():  # weights laid out for one format are not taken for another
        assert_same(through(x, parts, added), expected)


def test_half_precision_goes_part_by_part():
    torch.manual_seed(0)
    parts, x = [nn.Conv2d(8, 8, 3).bfloat16(), ReLU()], torch.randn(2, 8, 10, 10).bfloat16()
    with torch.inference_mode():
        assert torch.equal(through(x, parts), part_by_part(x, parts))


def test_changed_weights_are_noticed():
    torch.manual_seed(0)
    parts, x = [nn.Conv2d(8, 8, 3)], torch.randn(2, 8, 10, 10)
    with torch.inference_mode():
        first = through(x, parts)
    with torch.no_grad():
        parts[0].weight.mul_(2)
    with torch.inference_mode():
        second = through(x, parts)
    assert_same(second, part_by_part(x, parts))
    assert not torch.allclose(first, second)
    parts[0].load_state_dict({k: v / 2 for k, v in parts[0].state_dict().items()}, assign=True)
    with torch.inference_mode():
        assert_same(through(x, parts), part_by_part(x, parts))
        inside = copy.deepcopy(parts[0])  # its weights are made in here, and count no changes
        through(x, [inside])
        inside.weight.mul_(2)
        doubled = through(x, [inside])
    assert not torch.allclose(doubled, part_by_part(x, parts), atol=1e-3)


def test_a_convolution_of_another_kind_does_its_own_work():
    class Doubled(nn.Conv2d):
        def forward(self, x):
            return 2 * super().forward(x)

    torch.manual_seed(0)
    around = nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular")
    named = nn.Conv2d(8, 8, 3, padding="same")
    parts = [Doubled(8, 8, 1), ReLU(), around, SamePadding(3, 2), nn.Conv2d(8, 8, 3, 2, 1), named]
    x = torch.randn(2, 8, 10, 10)
    with torch.inference_mode():
        assert_same(through(x, parts), part_by_part(x, parts))
        with torch.autocast("cpu", torch.bfloat16):
            assert through(x, parts).dtype == torch.bfloat16
