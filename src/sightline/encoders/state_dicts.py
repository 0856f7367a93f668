"""Read a file of weights without running any code that might be in it."""

import pickle

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sightline.encoders.weights import WeightsFile, file_sha256
from sightline.errors import WeightsError


def read_weights(file: WeightsFile) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of a plain torch state dict, its hash checked."""
    path = file.path
    if file_sha256(path) != file.sha256:
        raise WeightsError(f"{path} is damaged or not the expected release: fetch it again")
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, OSError, RuntimeError, EOFError, ValueError, KeyError):
        raise WeightsError(f"{path} is damaged: fetch or copy it again") from None
    except pickle.UnpicklingError:
        raise WeightsError(
            f"{path} is not a plain weights file (or it is damaged, or contains code, which is "
            "never run): save the state dict alone"
        ) from None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise WeightsError(f"{path} contains no state dict: save model.state_dict() alone")
    return state
