"""A run folder: the recipe, the history, the checkpoints; and how a run finds its place again.

recipe.yaml        what is trained, defaults included
history.jsonl      a line per `log_every` steps and per evaluation; no times, so that a run that
                   was killed and resumed writes the very same file
checkpoints.json   the names of the best and the last checkpoint, and of what each phase ended with
step-*/            those checkpoints
tensorboard/       the same as pictures
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from sightline.config import Natural, Positive, from_dict, to_dict
from sightline.devices import restore_random_states
from sightline.errors import CheckpointError, ConfigError, TrainingError
from sightline.files import (
    DATA_BYTES,
    LOCK_FILES,
    BusyError,
    atomic_write,
    one_writer,
    open_regular,
    remove_strays,
    strays,
)
from sightline.recipe import Recipe, dump_recipe, load_recipe


@dataclass
class Position:
    """Where a run is: everything it needs to go on, apart from tensors."""

    phase: Natural = 0
    phase_step: Natural = 0  # at which the phase began
    phase_epoch: Natural = 0
    step: Natural = 0
    epoch: Natural = 0
    batch: Natural = 0  # of the epoch
    captions: Natural = 0  # seen so far
    best_score: float | None = None
    best_step: Natural = 0
    since_best: Natural = 0  # evaluations without a better score
    plateau_share: float = 1.0  # of the learning rate
    since_cut: Natural = 0
    finished: bool = False  # the phase is
    history_bytes: Natural = 0
    seconds: Positive = 0.0  # of training steps
    processor_seconds: Positive = 0.0  # of the same, of this process: others do not slow it down
    sums: dict[str, float] = field(default_factory=dict)  # of the terms since the last log line
    summed: Natural = 0
    objective: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any, where: str = "training.json") -> "Position":
        if isinstance(values, dict):  # version 0.1 called phases stages
            values = {str(name).replace("stage", "phase"): v for name, v in values.items()}
        return from_dict(cls, values, where, error=CheckpointError, joint=": ")


class History:
    """`history.jsonl`, cut back to where the checkpoint was when a run resumes."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        path.touch()
        with open_regular(path, DATA_BYTES) as file:
            written = os.fstat(file.fileno()).st_size
        if written < length:
            raise CheckpointError(
                f"{path}: shorter than when the last checkpoint was saved ({written} bytes, not "
                f"{length}); put it back, or train into a new folder"
            )
        os.truncate(path, length)

    def add(self, record: dict[str, Any]) -> int:
        """Append a line; returns the file's length, for the checkpoint to keep."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            return file.tell()


_WRITTEN = ("recipe.yaml", "checkpoints.json")


@contextlib.contextmanager
def claim_run(folder: Path, recipe: Recipe) -> Iterator[None]:
    """Hold a run's folder, made where absent; it must be of the same recipe, and nobody else's."""
    _check_run(folder, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with one_writer(folder):
            _check_run(folder, recipe)
            remove_strays(folder, _WRITTEN)
            if not _has_checkpoint(folder):  # a mistake before the first checkpoint can be mended
                with atomic_write(folder / "recipe.yaml") as file:
                    file.write(dump_recipe(recipe))
            yield
    except BusyError as error:
        raise TrainingError(
            f"{folder}: {error} is training here; wait until it ends, or choose a new folder "
            "with --run"
        ) from None


def _check_run(folder: Path, recipe: Recipe) -> None:
    path = folder / "recipe.yaml"
    if path.exists():
        trained = load_recipe(path)
        if trained != recipe and _has_checkpoint(folder):
            raise ConfigError(
                f"{folder}: contains a run of another recipe ({_differences(trained, recipe)}); "
                f"choose a new folder with --run (add start_from={folder} to train this captioner "
                "further), or give the original recipe to resume it"
            )
    elif folder.exists():  # perhaps of a run that was killed as it began
        ours = {*(folder / name for name in LOCK_FILES), *strays(folder, (*LOCK_FILES, *_WRITTEN))}
        if not ours >= set(folder.iterdir()):
            raise ConfigError(f"{folder}: is not a training run; choose a new folder with --run")


def _has_checkpoint(folder: Path) -> bool:
    return (folder / "checkpoints.json").exists() or any(folder.glob("step-*"))


def _differences(before: Recipe, now: Recipe) -> str:
    """The settings in which two recipes differ, at most three of them.

    >>> from sightline.recipe import DataRecipe
    >>> _differences(Recipe(DataRecipe("a"), epochs=5), Recipe(DataRecipe("b"), epochs=9))
    'data.path: a, now b; epochs: 5, now 9'
    """
    flat, flat_now = _flat(to_dict(before)), _flat(to_dict(now))
    changed = [
        f"{key}: {flat.get(key)}, now {flat_now.get(key)}"
        for key in dict.fromkeys([*flat, *flat_now])
        if flat.get(key) != flat_now.get(key)
    ]
    return "; ".join([*changed[:3], *["…"] * (len(changed) > 3)])


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def pack_tensors(
    optimizer: torch.optim.Optimizer, random: list[dict[str, torch.Tensor]]
) -> dict[str, Any]:
    """An optimiser's state and every process's random states, as tensors by name."""
    packed = {
        f"random.{rank}" if device == "cpu" else f"random.{rank}.{device}": state
        for rank, states in enumerate(random)
        for device, state in states.items()
    }
    for index, entries in optimizer.state_dict()["state"].items():
        for name, tensor in entries.items():
            packed[f"optimizer.{index}.{name}"] = tensor.contiguous()
    return packed


def unpack_tensors(
    optimizer: torch.optim.Optimizer, packed: dict[str, Any], rank: int, device: torch.device
) -> None:
    """Put back what `pack_tensors` took, in a process that computes on a device."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for name, tensor in packed.items():
        kind, _, rest = name.partition(".")
        if kind == "optimizer":
            index, _, entry = rest.partition(".")
            if tensor.ndim:
                parameter = parameters[int(index)]
                if tensor.shape != parameter.shape:
                    raise ValueError(f"{name} has shape {tuple(tensor.shape)}")
                # In the parameter's own order in memory, which the fused Adam takes for granted.
                tensor = torch.empty_like(parameter, dtype=tensor.dtype).copy_(tensor)
            state.setdefault(int(index), {})[entry] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    random = {"cpu": packed[f"random.{rank}"]}
    # Version 0.1 kept the CPU's alone; and a run may go on with another device.
    if (name := f"random.{rank}.{device.type}") in packed:
        random[device.type] = packed[name]
    restore_random_states(random, device)
