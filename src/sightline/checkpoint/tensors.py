"""The tensors of a checkpoint: written, and read into modules of the same make."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.overrides import TorchFunctionMode

from sightline.checkpoint.config import load_config
from sightline.encoders.weights import file_sha256
from sightline.errors import CheckpointError
from sightline.files import MEGABYTE, open_regular

_WEIGHTS_BYTES = 20_000 * MEGABYTE


def save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # a full disk, for one
        raise CheckpointError(f"{path}: cannot be written ({error})") from None


def load_tensors(path: Path, sha256: str | None = None) -> dict[str, torch.Tensor]:
    try:
        open_regular(path, _WEIGHTS_BYTES).close()
        if sha256 is not None and file_sha256(path) != sha256:
            raise CheckpointError(
                f"{path}: damaged (its SHA-256 is not the one in config.json); copy it again"
            )
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise _mismatch(path, error) from None


def load_weights(folder: Path, **modules: nn.Module) -> None:
    """Put a checkpoint's weights into modules of the same make, by the names of its files."""
    hashes = load_config(folder).get("sha256", {})
    for name, module in modules.items():
        path = folder / f"{name}.safetensors"
        tensors = load_tensors(path, hashes.get(path.name))
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise CheckpointError(f"{path}: holds numbers that are not finite; copy it again")
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:
            raise _mismatch(path, error) from None


def check_shapes(path: Path, module: nn.Module) -> None:
    """See that a file holds the tensors of a module, of which only the shapes are there."""
    try:
        open_regular(path, _WEIGHTS_BYTES).close()
        with safe_open(path, "pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _mismatch(path, error) from None
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in sorted({*shapes, *expected}):
        if shapes.get(name) != expected.get(name):
            raise _mismatch(
                path, f"{name} is {shapes.get(name, 'absent')}, not {expected.get(name, 'there')}"
            )


def _mismatch(path: Path, reason: object) -> CheckpointError:
    why = " ".join(str(reason).split())[:200]
    return CheckpointError(f"{path}: does not hold the {path.stem} of config.json ({why})")


class Unset(TorchFunctionMode):
    """Leaves new parameters unset: to draw numbers for none makes torch import its compiler."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func.__name__ in ("normal_", "uniform_"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
