"""METEOR against values of the Java original.

`meteor_cases.json` holds captions written for this test with the values that pycocoevalcap 1.2
(its tokenizer and METEOR 1.5) gives them.
"""

import doctest
import importlib
import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from sightline.errors import DataError
from sightline.metrics.meteor.scorer import Meteor, meteor

MODULE = importlib.import_module("sightline.metrics.meteor.scorer")
CASES = json.loads((Path(__file__).parent / "meteor_cases.json").read_text(encoding="utf-8"))
PICTURES = CASES["pictures"]
CANDIDATES = [picture["candidate"] for picture in PICTURES]
REFERENCES = [picture["references"] for picture in PICTURES]
VALUES = np.array([picture["meteor"] for picture in PICTURES])


@pytest.fixture(autouse=True)
def cache(request, monkeypatch):
    """One index of the real data for all runs of the tests: building it takes a while."""
    monkeypatch.setenv("SIGHTLINE_CACHE", str(request.config.cache.mkdir("meteor")))


@pytest.mark.parametrize("picture", PICTURES, ids=[str(number) for number in range(len(PICTURES))])
def test_a_picture_alone(picture):
    score = meteor([picture["candidate"]], [picture["references"]])
    assert score.per_image[0] == pytest.approx(picture["meteor"], abs=1e-12)


def test_the_corpus():
    score = meteor(CANDIDATES, REFERENCES)
    assert score.name == "METEOR"
    assert score.corpus == pytest.approx(CASES["corpus"], abs=1e-12)
    np.testing.assert_allclose(score.per_image, VALUES, atol=1e-12)


def test_the_corpus_value_is_not_the_mean():
    assert abs(CASES["corpus"] - VALUES.mean()) > 0.01


def test_perfect_captions_score_one_whatever_their_number():
    captions = ["a dog runs", "two cats sit on the red sofa", "a a b"]
    score = meteor(captions, [[caption, "something else"] for caption in captions])
    assert score.corpus == 1
    assert score.per_image.tolist() == [1, 1, 1]


def test_batches_change_nothing(monkeypatch):
    whole = meteor(CANDIDATES, REFERENCES)
    monkeypatch.setattr(MODULE, "_BATCH", 7)
    scorer = Meteor()
    for start in range(0, len(CANDIDATES), 20):
        scorer.add(CANDIDATES[start : start + 20], REFERENCES[start : start + 20])
    parts = scorer.score()
    assert parts.corpus == whole.corpus
    np.testing.assert_array_equal(parts.per_image, whole.per_image)


def test_the_order_of_pictures_and_references_changes_nothing():
    rng = random.Random(4)
    order = rng.sample(range(len(PICTURES)), len(PICTURES))
    shuffled = [rng.sample(REFERENCES[i], len(REFERENCES[i])) for i in order]
    score = meteor([CANDIDATES[i] for i in order], shuffled)
    np.testing.assert_allclose(score.per_image, VALUES[order], atol=1e-12)


def test_a_reference_more_never_lowers_a_picture():
    for picture in PICTURES:
        growing = list(itertools.accumulate([[text] for text in picture["references"]]))
        values = meteor([picture["candidate"]] * len(growing), growing).per_image
        assert (np.diff(values) >= 0).all()


def test_a_resampled_corpus_is_scored_by_its_own_counts():
    score = meteor(CANDIDATES, REFERENCES)
    drawn = np.random.default_rng(0).integers(len(PICTURES), size=len(PICTURES))
    again = meteor([CANDIDATES[i] for i in drawn], [REFERENCES[i] for i in drawn])
    weights = np.bincount(drawn, minlength=len(PICTURES)).astype(float)
    assert score.resampled(weights) == pytest.approx(again.corpus, abs=1e-12)
    everything = np.stack([weights, np.ones(len(PICTURES))])
    assert score.resampled(everything)[1] == pytest.approx(score.corpus, abs=1e-12)


def test_a_tokenizer_of_ones_own():
    score = meteor(["red_car"], [["fast_red_car"]], tokenizer=lambda text: text.split("_"))
    assert score.corpus == meteor(["red car"], [["fast red car"]]).corpus


def test_nothing_to_score():
    with pytest.raises(DataError, match="nothing to score"):
        meteor([], [])


def test_shapes_are_checked():
    with pytest.raises(DataError, match="2 candidates but references for 1"):
        meteor(["a", "b"], [["a"]])
    with pytest.raises(DataError, match="picture 0 has no reference"):
        meteor(["a"], [[]])


def test_the_examples_in_docstrings():
    results = doctest.testmod(MODULE)
    assert results.attempted >= 3
    assert not results.failed
