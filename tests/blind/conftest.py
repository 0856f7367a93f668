"""A small study of two systems whose captions are known."""

import json
from pathlib import Path

import pytest
from PIL import Image

from sightline.blind.compare import compare_blind
from sightline.blind.study import Study

THINGS = ("dog", "boat", "train", "pizza", "clock", "horse", "plane", "kite", "zebra", "sofa")


@pytest.fixture(scope="session")
def photographs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    for number, thing in enumerate(THINGS):
        picture = Image.new("RGB", (80, 60), (20 * number, 90, 120))
        exif = picture.getexif()
        exif[0x010E] = "secret description"
        picture.save(folder / f"{thing}.jpg", exif=exif)
    return folder


def write_captions(folder: Path) -> tuple[Path, Path]:
    """Of the first picture both say the same; the second system shouts and ends its sentences."""
    ours, theirs = folder / "ours.jsonl", folder / "theirs.json"
    ours.write_text(
        "".join(
            json.dumps({"path": f"photos/{thing}.jpg", "caption": f"one {thing} outside"}) + "\n"
            for thing in THINGS
        )
    )
    records = [{"image_id": f"{THINGS[0]}.jpg", "caption": f"One {THINGS[0]} outside."}]
    records += [{"image_id": thing, "caption": f"A {thing}  indoors ."} for thing in THINGS[1:]]
    theirs.write_text(json.dumps(records))
    return ours, theirs


@pytest.fixture
def systems(tmp_path) -> tuple[Path, Path]:
    return write_captions(tmp_path)


@pytest.fixture
def study_folder(systems, photographs, tmp_path) -> Path:
    compare_blind(*systems, photographs, tmp_path / "study", raters=("Ann", "Ben", "Eve"))
    return tmp_path / "study"


@pytest.fixture
def study(study_folder) -> Study:
    return Study.load(study_folder)
