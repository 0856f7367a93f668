"""Where a captioner that is not ours comes from, as a user names it: `hf:FOLDER` or `http://…`."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from sightline.errors import CheckpointError
from sightline.files import atomic_write, expand
from sightline.parsing import read_json

FILE = "remote.json"  # names the server, in the folder where its captioner's check is kept


@dataclass(frozen=True)
class Source:
    """A captioner of transformers, in a folder or on the Hub; or one behind an HTTP API."""

    name: str  # a folder, a name of the Hugging Face Hub, or an address
    kept_in: Path | None = None  # of a remote one, the folder of its check

    @property
    def is_remote(self) -> bool:
        return _ADDRESS.fullmatch(self.name) is not None

    def __str__(self) -> str:
        return self.name if self.is_remote else f"hf:{self.name}"

    @property
    def label(self) -> str:
        """A short name.

        >>> Source("captioners/blip").label, Source("http://localhost:8000/v1#llava").label
        ('blip', 'llava')
        """
        return re.split(r"[/#]", self.name.rstrip("/"))[-1]

    @property
    def folder(self) -> Path | None:
        """Where its support classifier is kept; None if it is not on this machine."""
        if self.is_remote:
            return self.kept_in
        folder = expand(self.name)
        return folder if folder.is_dir() else None

    def require_folder(self) -> None:
        """Refuse a name that can only be a folder, and is none."""
        is_path = self.name.startswith((".", "/", "~")) or self.name.count("/") != 1
        if not self.is_remote and self.folder is None and is_path:
            raise CheckpointError(f"{self}: there is no such folder")


_ADDRESS = re.compile(r"https?://.+", re.DOTALL)


def find_source(name: Path | str) -> Source | None:
    """What a name means, unless it is a checkpoint of ours.

    >>> find_source("hf:captioners/blip").name, find_source("runs/mine")
    ('captioners/blip', None)
    >>> find_source(Path("http://localhost:8000/v1")).name  # (a path has lost a slash)
    'http://localhost:8000/v1'
    """
    if hub := re.fullmatch(r"hf:(.+)", str(name), re.DOTALL):
        return Source(hub[1])
    if address := re.fullmatch(r"(https?):/{1,2}([^/].*)", str(name), re.DOTALL):
        return Source(f"{address[1]}://{address[2]}")
    folder = Path(name)
    if not (folder / FILE).is_file():
        return None
    content = read_json(folder / FILE, error=CheckpointError)
    url = content.get("url") if isinstance(content, dict) else None
    if not isinstance(url, str) or not _ADDRESS.fullmatch(url):
        raise CheckpointError(f"{folder / FILE}: 'url' must be an address, http://… or https://…")
    return Source(url, folder)


def keep_remote(source: Source, folder: Path) -> None:
    """Make a folder that names a server, in which its captioner's check can be kept."""
    folder.mkdir(parents=True)
    with atomic_write(folder / FILE) as file:
        json.dump({"url": source.name}, file)
