"""A file that is damaged, and what reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

Damage = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Target:
    """A file, how it is damaged, and what reads it."""

    file: Path
    damage: Damage
    read: Callable[[], object]


def write(path: Path, content: str | bytes) -> Path:
    """A new file, in a folder that may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
