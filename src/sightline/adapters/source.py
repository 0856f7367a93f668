"""Where a captioner that is not ours comes from, as a user names it: `hf:FOLDER`."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A captioner of transformers: a folder, or a name of the Hugging Face Hub."""

    name: str

    def __str__(self) -> str:
        return f"hf:{self.name}"

    @property
    def folder(self) -> Path | None:
        """Where its support classifier is kept; None if it is not on this machine."""
        folder = Path(self.name).expanduser()
        return folder if folder.is_dir() else None


def find_source(name: Path | str) -> Source | None:
    """What a name means, unless it is a checkpoint of ours.

    >>> find_source("hf:captioners/blip"), find_source("runs/mine")
    (Source(name='captioners/blip'), None)
    """
    found = re.fullmatch(r"hf:(.+)", str(name), re.DOTALL)
    return Source(found[1]) if found else None
