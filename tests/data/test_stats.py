"""What `sightline data stats` counts and draws."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.stats import THRESHOLDS, SplitSize, measure
from sightline.errors import DataError


@pytest.fixture
def dataset():
    box = Grounding("dog", ((0.0, 0.0, 1.0, 1.0),))
    path = Path("x.jpg")
    return CaptionDataset(
        (
            CaptionedImage("a", path, ("A dog runs.", "a dog"), "train", (box,)),
            CaptionedImage("b", path, ("a cat",), "train"),
            CaptionedImage("c", path, ("a hen sits on a box",), "dev"),
            CaptionedImage("d", path, ("nobody's",), None),
        )
    )


def test_sizes_of_every_split(dataset):
    assert measure(dataset).splits == {
        "train": SplitSize(images=2, captions=3, tokens=7, with_boxes=1),
        "dev": SplitSize(images=1, captions=1, tokens=6, with_boxes=0),
        "no split": SplitSize(images=1, captions=1, tokens=2, with_boxes=0),  # nobody 's
    }


def test_lengths_and_coverage_are_of_the_training_split(dataset):
    stats = measure(dataset)
    assert stats.lengths == {2: 2, 3: 1}
    assert [minimum for minimum, _, _ in stats.coverage] == list(THRESHOLDS)
    assert stats.coverage[:3] == [(1, 4, 1.0), (2, 2, 5 / 7), (3, 1, 3 / 7)]


def test_without_a_training_split_they_are_of_everything(dataset):
    unsplit = CaptionDataset(tuple(replace(image, split=None) for image in dataset))
    assert measure(unsplit).lengths == {2: 3, 3: 1, 6: 1}


def test_json(dataset):
    content = measure(dataset).to_json()
    assert content["lengths"] == {"2": 2, "3": 1}
    assert content["splits"]["dev"] == {"images": 1, "captions": 1, "tokens": 6, "with_boxes": 0}
    assert content["coverage"][1] == {"min_count": 2, "words": 2, "token_share": 5 / 7}


def test_figure(dataset, tmp_path):
    measure(dataset).plot(tmp_path / "stats.png")
    with Image.open(tmp_path / "stats.png") as figure:
        assert figure.size == (1500, 540)
        assert len(figure.convert("RGB").getcolors(10**6)) > 10  # something is drawn
    with pytest.raises(DataError, match=r"must end in \.png, \.pdf or \.svg"):
        measure(dataset).plot(tmp_path / "stats.gif")
