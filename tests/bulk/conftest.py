"""Pictures to caption in bulk, and a captioner that is quick about it."""

import shutil
from pathlib import Path

import pytest

from sightline.captioner import Captioner


@pytest.fixture(scope="session")
def captioner(checkpoint: Path) -> Captioner:
    return Captioner.load(checkpoint, device="cpu")


@pytest.fixture(scope="session")
def fitted(fitted_checkpoint: Path) -> Captioner:
    return Captioner.load(fitted_checkpoint, device="cpu")


@pytest.fixture
def album(examples: Path, tmp_path: Path) -> Path:
    """Seven pictures in two folders, two of one name; and a file that is no picture."""
    folder = tmp_path / "album"
    (folder / "inner").mkdir(parents=True)
    for name in ("cat", "coffee", "flower", "officer", "palace"):
        shutil.copy(examples / f"{name}.jpg", folder / f"{name}.jpg")
    shutil.copy(examples / "rocket.jpg", folder / "inner" / "cat.jpg")
    shutil.copy(examples / "raccoon.jpg", folder / "inner" / "raccoon.JPG")
    (folder / "notes.txt").write_text("not a picture")
    return folder
