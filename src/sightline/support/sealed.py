"""Safetensors files with a hash of their own content: what is read is what was written."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from sightline.errors import CheckpointError
from sightline.files import MEGABYTE, atomic_write, open_regular

_MOST_BYTES = 2_000 * MEGABYTE
_SEAL = "sha256"


def save_sealed(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors and texts, whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.safetensors"
    >>> save_sealed(path, {"weights": torch.ones(2)}, {"about": "both are 1"})
    >>> load_sealed(path)[1]
    {'about': 'both are 1'}
    """
    with atomic_write(path, "wb") as file:
        file.write(save(tensors, metadata | {_SEAL: _digest(tensors, metadata)}))


def load_sealed(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What `save_sealed` wrote; finite numbers alone. Files of before have no hash."""
    damaged = CheckpointError(
        f"{path}: damaged, or of another version; run sightline fit-support again"
    )
    try:
        open_regular(path, _MOST_BYTES).close()
        with safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        raise damaged from None
    seal = metadata.pop(_SEAL, None)
    if seal is not None and seal != _digest(tensors, metadata):
        raise damaged
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise damaged
    return tensors, metadata


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().cpu().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
