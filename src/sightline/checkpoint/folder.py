"""A checkpoint's folder: it gets its name only when it is complete."""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sightline.checkpoint.config import FORMAT, load_config
from sightline.checkpoint.tensors import save_tensors
from sightline.encoders.registry import ENCODERS
from sightline.encoders.trainable_stages import TrainableStages
from sightline.encoders.weights import file_sha256
from sightline.errors import CheckpointError
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS

FILES = (
    "model.safetensors",
    "config.json",
    "README.md",
    "support.safetensors",
    "familiarity.safetensors",
    "encoder.safetensors",
    "training.safetensors",
    "training.json",
)
"""All that a checkpoint may consist of; nothing else is ever deleted."""


def save_checkpoint(
    folder: Path,
    model: CaptionModel,
    config: dict[str, Any],
    card: str,
    *,
    trainable: TrainableStages | None = None,
    tensors: dict[str, torch.Tensor] | None = None,
    training: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder, whole or not at all.

    With `trainable`, the phases of the encoder that were trained are in it. With `tensors` and
    `training` it also holds what is needed to go on training.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        modules: dict[str, nn.Module] = {"model": model}
        if trainable is not None:
            modules["encoder"] = trainable
            config = config | {
                "tuned": {"from": trainable.train_from, "sha256": trainable.fingerprint}
            }
        hashes = {}
        for name, module in modules.items():
            file = unfinished / f"{name}.safetensors"
            save_tensors(_weights(module), file)
            hashes[file.name] = file_sha256(file)
        config = config | {"sha256": hashes}
        if plugins := _plugins_of(config):
            config = config | {"plugins": plugins}
        (unfinished / "config.json").write_text(
            json.dumps({"format": FORMAT, **config}, indent=1, ensure_ascii=False), "utf-8"
        )
        (unfinished / "README.md").write_text(card, "utf-8")
        if training is not None:
            save_tensors(tensors or {}, unfinished / "training.safetensors")
            (unfinished / "training.json").write_text(json.dumps(training), "utf-8")
        for file in unfinished.iterdir():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        unfinished.chmod(0o755)
        _replace(folder, unfinished)
    except BaseException:
        delete_checkpoint(unfinished)
        raise


def _weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """The weights by name; those that two names share twice, since a file cannot share them."""
    dense = torch.contiguous_format
    return {name: tensor.clone(memory_format=dense) for name, tensor in module.state_dict().items()}


def _plugins_of(config: dict[str, Any]) -> dict[str, str]:
    """The modules of the plug-ins that a checkpoint needs: for people, nothing imports them."""
    model, encoders = (str(config.get(part, {}).get("name", "")) for part in ("model", "encoder"))
    origins = {name: ENCODERS.origin(name) for name in encoders.split("+") if name}
    origins |= {model: MODELS.origin(model)} if model else {}
    return {name: module for name, module in origins.items() if module is not None}


def _replace(folder: Path, unfinished: Path) -> None:
    """Give a finished checkpoint its name, in place of one that has it."""
    if not folder.exists():
        os.replace(unfinished, folder)
        return
    require_replaceable(folder)
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    os.replace(folder, old)
    os.replace(unfinished, folder)
    delete_checkpoint(old)


def require_replaceable(folder: Path) -> None:
    """Refuse to replace a folder that is there, unless it is a checkpoint and nothing else."""
    if not folder.exists():
        return
    others = sorted({path.name for path in folder.iterdir()}.difference(FILES))
    if others or not (folder / "config.json").is_file():
        holds = f"holds {others[0]}" if others else "is not a checkpoint"
        raise CheckpointError(f"{folder}: {holds}; choose a new folder (nothing was changed)")
    load_config(folder)


def delete_checkpoint(folder: Path) -> None:
    """Delete a checkpoint: the files that one has, and the folder if nothing else is in it."""
    for name in FILES:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
