"""Read a file of weights without running any code that might be in it."""

import pickle
import zipfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from sightline.encoders.weights import WeightsFile, file_sha256
from sightline.errors import WeightsError
from sightline.files import MEGABYTE


def read_weights(file: WeightsFile) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of a plain torch state dict, its hash checked."""
    path = file.path
    if file_sha256(path) != file.sha256:
        raise WeightsError(f"{path} is damaged or not the expected release: fetch it again")
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        _refuse_bombs(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except WeightsError:
        raise
    except pickle.UnpicklingError:
        raise WeightsError(
            f"{path} is not a plain weights file (or it is damaged, or contains code, which is "
            "never run): save the state dict alone"
        ) from None
    # torch raises many things on damaged files; whatever it is, the file is the cause.
    except Exception:
        raise WeightsError(f"{path} is damaged: fetch or copy it again") from None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise WeightsError(f"{path} contains no state dict: save model.state_dict() alone")
    return state


def _refuse_bombs(path: Path) -> None:
    """torch writes archives without compression: one that unpacks to more was made by others."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > path.stat().st_size + MEGABYTE:
            raise WeightsError(f"{path} is compressed, as weights are not: save the state dict")
