"""Which checkpoints of a run are the best and the last, and which one a path means."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from sightline.adapters.source import find_source
from sightline.checkpoint.config import Name
from sightline.checkpoint.folder import delete_checkpoint
from sightline.config import from_dict
from sightline.errors import CheckpointError
from sightline.files import atomic_write
from sightline.parsing import read_json

BUNDLED = Path(__file__).parents[1] / "bundled"  # the captioner that comes with the package
_STEP = re.compile(r"step-\d{7,}|\.step-\d{7,}\.[a-z0-9_]{8}")  # finished, and not


@dataclass(frozen=True)
class _Pointers:
    folders: dict[str, Name]


def read_pointers(run: Path) -> dict[str, str]:
    """Which checkpoint folders of a run are the `best`, the `last`, `stage-1` …"""
    path = run / "checkpoints.json"
    if not path.exists():
        return {}
    pointers = from_dict(
        _Pointers,
        {"folders": read_json(path, error=CheckpointError)},
        str(path),
        error=CheckpointError,
        joint=": ",
    ).folders
    for name, folder in pointers.items():
        if Path(folder).name != folder or folder == "..":
            raise CheckpointError(f"{path}: '{name}' must be a folder of the run, not '{folder}'")
    if pointers and "last" not in pointers:
        raise CheckpointError(f"{path}: 'last' is missing")
    return pointers


def write_pointers(run: Path, pointers: dict[str, str]) -> None:
    """Name the checkpoints to keep, then delete the others."""
    with atomic_write(run / "checkpoints.json") as file:
        json.dump(pointers, file)
    for folder in run.iterdir():
        is_ours = _STEP.fullmatch(folder.name) and not folder.is_symlink() and folder.is_dir()
        if is_ours and folder.name not in pointers.values():
            delete_checkpoint(folder)


def find_checkpoint(path: Path | None = None, phase: int | None = None) -> Path:
    """The checkpoint folder that `path` means: itself, or the best one of a run or of its phase.

    Without a path it is the captioner that comes with the package. `hf:FOLDER` and `http://…`
    stay as they are: captioners that are not ours have no phases.

    >>> find_checkpoint().name
    'bundled'
    """
    path = path or BUNDLED
    if (source := find_source(path)) is not None:
        if phase is not None:
            raise CheckpointError(f"{source}: was not trained here, so there is no phase {phase}")
        source.require_folder()
        return path
    if (path / "config.json").is_file():
        return path
    if pointers := read_pointers(path):
        if phase is None:
            return path / (pointers.get("best") or pointers["last"])
        if f"stage-{phase}" not in pointers:
            phases = sum(name.startswith("stage-") for name in pointers)
            raise CheckpointError(
                f"{path}: {phases} phases have ended, so there is no phase {phase}"
            )
        return path / pointers[f"stage-{phase}"]
    what = "has no checkpoint in it" if path.exists() else "does not exist"
    raise CheckpointError(f"{path} {what}: give a checkpoint folder or a training run")
