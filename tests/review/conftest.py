"""A folder of pictures to review, and a captioner that is quick about it."""

import shutil
from pathlib import Path

import pytest

from sightline.captioner import Captioner
from sightline.review.collection import Review


@pytest.fixture(scope="session")
def fitted(fitted_checkpoint: Path) -> Captioner:
    return Captioner.load(fitted_checkpoint, device="cpu")


@pytest.fixture
def photos(examples: Path, tmp_path: Path) -> Path:
    """Four pictures, one in a folder, and one that cannot be read."""
    folder = tmp_path / "photos"
    (folder / "inner").mkdir(parents=True)
    for name in ("cat", "coffee", "flower"):
        shutil.copy(examples / f"{name}.jpg", folder / f"{name}.jpg")
    shutil.copy(examples / "rocket.jpg", folder / "inner" / "cat.jpg")
    (folder / "broken.jpg").write_bytes((folder / "cat.jpg").read_bytes()[:1500])
    return folder


@pytest.fixture
def review(photos: Path):
    with Review(photos) as opened:
        opened.scan()
        yield opened


@pytest.fixture
def captioned(review: Review, fitted: Captioner) -> Review:
    from sightline.bulk.job import Job
    from sightline.bulk.sources import open_source
    from sightline.review.captioning import ReviewSink

    Job(fitted, 2, options={"check": True}).run(open_source(review.folder), ReviewSink(review))
    return review
