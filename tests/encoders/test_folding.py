"""Folding batch norms changes nothing but the number of layers."""

import pytest
import torch
from torch import nn

from sightline.encoders.efficientnet_lite import EfficientNetLite
from sightline.encoders.encoder import create_encoder
from sightline.encoders.folding import fold_batch_norms
from sightline.encoders.resnet import ResNet


def with_lively_norms(network: nn.Module) -> nn.Module:
    """Norms that do something: random statistics and scales."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    return network.eval()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_a_pair_of_layers_is_the_same_function(bias, affine, groups):
    torch.manual_seed(0)
    pair = nn.Sequential(
        nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=groups, bias=bias),
        nn.BatchNorm2d(12, eps=1e-3, affine=affine),
    ).double()
    pair[1].running_mean.normal_()
    pair[1].running_var.uniform_(0.1, 3)
    x = torch.randn(2, 8, 9, 9).double()
    before = pair.eval()(x)
    assert torch.allclose(fold_batch_norms(pair)(x), before, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "stage"), [(lambda: EfficientNetLite(0), "head"), (lambda: ResNet(50), "stage5")]
)
def test_a_whole_network_is_the_same_function(make, stage):
    torch.manual_seed(0)
    network = with_lively_norms(make())
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        before = network.stage(x, stage)
        after = fold_batch_norms(network).stage(x, stage)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    assert before.abs().mean() > 1e-3
    assert (after - before).norm() / before.norm() < 1e-5


def test_the_trained_encoder_is_the_same_folded_and_not(lite0, examples):
    unfolded = create_encoder("efficientnet_lite0", fold=False)
    assert any(isinstance(module, nn.BatchNorm2d) for module in unfolded.modules())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in lite0.modules())
    pixels = torch.from_numpy(lite0.preprocessing.load(examples / "cat.jpg")[0])[None]
    with torch.no_grad():
        fast, plain = (e.features(e.normalise(pixels)) for e in (lite0, unfolded))
    assert (fast - plain).abs().max() < 1e-4
    assert (fast - plain).norm() / plain.norm() < 1e-5


def test_a_norm_elsewhere_stays():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.BatchNorm2d(4))
    assert isinstance(fold_batch_norms(network)[2], nn.BatchNorm2d)
