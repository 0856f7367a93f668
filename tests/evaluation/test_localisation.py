"""The share of relevance inside boxes, on relevance made by hand."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.captions import Caption, Word
from sightline.data.dataset import CaptionedImage, Grounding
from sightline.errors import ConfigError, DataError
from sightline.evaluation.localisation import (
    RunLocalisation,
    correctness,
    localise,
    plot,
    tabulate,
    to_markdown,
)
from sightline.explanation import Explanation

QUARTER = (0.0, 0.0, 0.25, 1.0)
REGIONS = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0))
MAPS = {  # of pictures of 2 x 4 pixels
    "attention": [[1, 1, 1, 1], [1, 1, 1, 1]],
    "lrp": [[3, 1, -1, -1], [2, 0, 0, -1]],
    "grad_cam": [[-3, -1, -1, -1], [-2, -2, -1, -1]],
}


class Captioned:
    """Captions every picture alike, and explains with the maps above."""

    def __init__(self, *words):
        self.words, self.asked, self.captioned, self.explained = words, [], [], []

    def open(self, picture):
        return picture

    def caption(self, pictures):
        self.captioned += pictures
        words = tuple(Word(text, 0.0, (), ()) for text in self.words)
        return [Caption(" ".join(self.words), words, 0.0, 0.0, REGIONS) for _ in pictures]

    def explain(self, picture, caption, *, words, method):
        self.asked.append((caption.text, words, method))
        self.explained.append(picture)
        return [
            Explanation(
                method,
                caption.words[place].text,
                place,
                1.0,
                np.float32([3, -1]),
                REGIONS,
                (),
                np.float32([]),
                np.float32(MAPS[method]),
            )
            for place in words
        ]


def images(*labels):
    """Pictures of which each has one thing, on its left quarter."""
    return [
        CaptionedImage(
            f"{n}.png",
            Image.new("RGB", (4, 2)),
            (label,),
            groundings=(Grounding(label, (QUARTER,), 0, (0, 1)),),
        )
        for n, label in enumerate(labels)
    ]


def test_only_positive_relevance_counts_inside_and_outside():
    there = np.array([[True, True, False, False]])
    assert correctness(np.array([[3.0, -9.0, 1.0, -5.0]]), there)[0] == 0.75
    assert correctness(-np.array([[3.0, -9.0, 1.0, -5.0]]), there)[0] == pytest.approx(9 / 14)
    assert correctness(np.array([[-1.0, 0.0, 0.0, -1.0]]), there)[0] == 0


def test_a_threshold_leaves_out_what_is_below_that_share_of_the_largest():
    relevance, there = np.array([[10.0, 4.5, 2.0, 0.5]]), np.array([[True, False, True, False]])
    shares = correctness(relevance, there)
    expected = [12 / 17, 12 / 16.5, 12 / 16.5, 10 / 14.5, 10 / 14.5, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(shares, expected)


def test_words_with_boxes_are_measured_and_no_others():
    captioner = Captioned("a", "dog", "and", "dog")
    attention, lrp = localise(captioner, images("dog", "cat", "dog"), ["attention", "lrp"])
    assert captioner.asked == 2 * [
        ("a dog and dog", [1, 3], "attention"),
        ("a dog and dog", [1, 3], "lrp"),
    ]
    assert lrp.pictures.tolist() == [0, 0, 2, 2]
    assert lrp.area.tolist() == [0.25] * 4
    assert attention.positive[:, 0].tolist() == [0.25] * 4  # spread evenly: as much as the area
    np.testing.assert_allclose(lrp.positive[:, 0], 5 / 6)
    assert lrp.negative[:, 0].tolist() == [0] * 4
    assert lrp.regions.tolist() == [0.5] * 4  # the left half, all of it
    assert lrp.pointed.tolist() == [1] * 4
    assert attention.pointed.tolist() == [0.25] * 4  # nowhere in particular


def test_more_pictures_than_are_captioned_at_once():
    captioner, given = Captioned("dog"), images(*["dog"] * 17, "cat", *["dog"] * 3)
    measured = localise(captioner, given, ["lrp"])[0]
    assert measured.pictures.tolist() == [*range(17), 18, 19, 20]
    assert [id(p) for p in captioner.captioned] == [id(image.picture) for image in given]
    del given[17]
    assert [id(p) for p in captioner.explained] == [id(image.picture) for image in given]


def test_what_is_nowhere_positive_is_not_inside():
    measured = localise(Captioned("dog"), images("dog"), ["grad_cam"])[0]
    assert measured.score.corpus == 0
    assert 0.25 < measured.negative[0, 0] < 1
    assert measured.pointed[0] == 0


def test_the_table_compares_with_attention_on_the_same_words(tmp_path):
    localisations = localise(Captioned("a", "dog"), images("dog", "dog"), ["attention", "lrp"])
    run = RunLocalisation("run-1", "grid_td", localisations)
    first, second = tabulate([run])
    assert (first["inside"], first["above_attention"]) == (0.25, None)
    assert second["above_attention"] == pytest.approx([5 / 6 - 0.25] * 3)
    assert second["interval"] == pytest.approx((5 / 6, 5 / 6))
    assert (second["pictures"], second["words"], second["area"]) == (2, 2, 0.25)
    lines = to_markdown([first, second]).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert "| lrp | 83.3 (83.3 to 83.3) | +58.3 (+58.3 to +58.3) | 50.0 |" in lines[3]
    plot([run, run], tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().count("threshold") >= 2
    with pytest.raises(ConfigError, match="a figure must end in"):
        plot([run], Path("figure.txt"))


def test_without_attention_nothing_is_compared():
    rows = tabulate([RunLocalisation("r", "m", localise(Captioned("a"), images("a"), ["lrp"]))])
    assert rows[0]["above_attention"] is None
    assert "| - |" in to_markdown(rows)


def test_pictures_are_resampled_not_words():
    measured = localise(Captioned("dog", "dog"), images("dog", "dog"), ["lrp"])[0]
    assert len(measured.score.per_image) == 2


def test_errors():
    with pytest.raises(ConfigError, match="no explanation method is called 'grad_kam'"):
        localise(Captioned("dog"), images("dog"), ["grad_kam"])
    bare = CaptionedImage("p.png", Image.new("RGB", (4, 2)), ("a dog",))
    with pytest.raises(DataError, match="none of the 1 pictures has boxes"):
        localise(Captioned("dog"), [bare], ["lrp"])
    with pytest.raises(DataError, match="name no object that has a box"):
        localise(Captioned("cat"), images("dog"), ["lrp"])
