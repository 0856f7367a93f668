"""ResNet in torchvision's layout, in both conventions, and ResNet-50 with its trained weights."""

import pytest
import torch

from sightline.encoders.resnet import ResNet


@pytest.mark.parametrize(("variant", "blocks"), [(50, (3, 4, 6, 3)), (101, (3, 4, 23, 3))])
def test_keys_and_shapes_are_torchvisions(variant, blocks):
    expected = {"conv1.weight": (64, 3, 7, 7), "fc.weight": (1000, 2048), "fc.bias": (1000,)}

    def norm(prefix, width):
        for name in ("weight", "bias", "running_mean", "running_var"):
            expected[f"{prefix}.{name}"] = (width,)
        expected[f"{prefix}.num_batches_tracked"] = ()

    norm("bn1", 64)
    inputs = 64
    for layer, count in enumerate(blocks, start=1):
        inner = 64 * 2 ** (layer - 1)
        for block in range(count):
            prefix = f"layer{layer}.{block}"
            expected[f"{prefix}.conv1.weight"] = (inner, inputs, 1, 1)
            expected[f"{prefix}.conv2.weight"] = (inner, inner, 3, 3)
            expected[f"{prefix}.conv3.weight"] = (4 * inner, inner, 1, 1)
            for number, width in ((1, inner), (2, inner), (3, 4 * inner)):
                norm(f"{prefix}.bn{number}", width)
            if block == 0:
                expected[f"{prefix}.downsample.0.weight"] = (4 * inner, inputs, 1, 1)
                norm(f"{prefix}.downsample.1", 4 * inner)
            inputs = 4 * inner
    with torch.device("meta"):
        state = ResNet(variant).state_dict()
    assert {key: tuple(value.shape) for key, value in state.items()} == expected


@pytest.mark.parametrize("first", [False, True])
def test_the_convention_decides_which_convolution_shrinks(first):
    with torch.device("meta"):
        block = ResNet(50, stride_in_first=first).layer2[0]
    assert block.conv1.stride == ((2, 2) if first else (1, 1))
    assert block.conv2.stride == ((1, 1) if first else (2, 2))
    assert block.downsample[0].stride == (2, 2)


@pytest.mark.network
def test_fetched_resnet50_names_what_photographs_show(fetched, imagenet_labels):
    resnet = fetched("resnet50")
    assert resnet.preprocessing.channels == "BGR"
    # With the stride, mean, scale or channel order of another convention this certainty is lost.
    assert imagenet_labels(resnet, least=0.9) == {
        "cat": "Egyptian cat",
        "coffee": "espresso",
        "photographer": "tripod",
        "officer": "military uniform",
    }
