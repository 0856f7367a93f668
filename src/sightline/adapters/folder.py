"""A captioner's folder in transformers' layout, looked at before transformers reads it.

Transformers builds whatever `config.json` describes. So what is described must be within bounds,
and no larger than the weights that are there.
"""

import re
from pathlib import Path
from typing import Any

from torch import nn

from sightline.errors import CheckpointError
from sightline.files import MEGABYTE
from sightline.parsing import read_json

_JSON_BYTES = 200 * MEGABYTE  # the largest tokenizers have 30
_LARGEST = 2**31  # number in a configuration
_MOST_LAYERS = 512
_LAYERS = re.compile("(num|n)_.*(layer|block|expert|stage)s?$|depths?$")
_COUNTED = re.compile("^(num|n)_|(size|dim|width|heads)$")
_SLACK = 10_000_000  # numbers that are computed and not stored, such as those of positions


def check_folder(folder: Path) -> None:
    """Refuse JSON files that are none, and configurations of endless networks."""
    for path in sorted(folder.glob("*.json")):
        content = read_json(path, _JSON_BYTES, CheckpointError)
        if not isinstance(content, dict):
            raise CheckpointError(f"{path}: must be a group of keys")
        if path.name in ("config.json", "preprocessor_config.json", "processor_config.json"):
            _check_numbers(content, path)
    for path in folder.glob("*.safetensors"):
        if not path.is_file():
            raise CheckpointError(f"{path}: is not a regular file")


def _check_numbers(value: Any, path: Path, key: str = "") -> None:
    """Refuse numbers that no captioner has; `key` is the nearest name above the value."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_numbers(item, path, name)
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item, path, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        most = _MOST_LAYERS if _LAYERS.search(key) else _LARGEST
        if abs(value) > most:
            raise CheckpointError(f"{path}: '{key[:100]}' must be at most {most}")
        if value < 0 and _COUNTED.search(key):
            raise CheckpointError(f"{path}: '{key[:100]}' must not be less than 0")


def check_size(folder: Path, model: nn.Module) -> None:
    """Refuse a network (without numbers yet) that is much larger than the weights that are there.

    >>> check_size(Path("nothing"), nn.Linear(2, 2, device="meta"))  # of any size that is small
    """
    needed = sum(t.numel() for t in (*model.parameters(), *model.buffers()))
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))  # a byte each
    if needed > stored + _SLACK:
        raise CheckpointError(
            f"{folder}: config.json describes a captioner of {needed:,} numbers, and its weights "
            f"(*.safetensors) have {stored:,} bytes"
        )
