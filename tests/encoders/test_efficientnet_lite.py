"""EfficientNet-Lite: TensorFlow's padding, and the trained weights that come with Sightline."""

import pytest
import torch

from sightline.encoders.efficientnet_lite import SamePadding
from sightline.encoders.encoder import create_encoder


@pytest.mark.parametrize("number", [0, 1, 2])
def test_installed_weights_name_what_photographs_show(number, imagenet_labels):
    assert imagenet_labels(create_encoder(f"efficientnet_lite{number}"), least=0.2) == {
        "cat": "Egyptian cat",
        "coffee": "espresso",
        "photographer": "tripod",
        "officer": "military uniform",
    }


@pytest.mark.parametrize(
    ("kernel", "length", "before", "after"),
    [(3, 224, 0, 1), (3, 65, 1, 1), (5, 112, 1, 2), (5, 33, 2, 2)],
)
def test_padding_is_tensorflows_same(kernel, length, before, after):
    padded = SamePadding(kernel, 2)(torch.ones(1, 1, length, length))
    row = padded[0, 0, length // 2]
    assert row.tolist() == [0.0] * before + [1.0] * length + [0.0] * after
