"""The support of words: judged, stored, and shown with the caption."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import sightline
from sightline.captions import VERDICTS, Caption
from sightline.errors import CheckpointError, ConfigError
from sightline.regions import Regions
from sightline.support.classifier import (
    FILE,
    SupportClassifier,
    load_classifier,
    save_classifier,
    score_words,
)
from sightline.support.logistic import Logistic
from sightline.support.word_detector import WordDetector
from sightline.support.word_scores import MEANING
from sightline.text.vocabulary import Vocabulary
from tiny_models import REGION_DIM, create

DETECTOR = WordDetector(
    ("cat", "mat"),
    torch.tensor([-1.0, -2.0]),
    torch.randn(3, 2 * REGION_DIM, generator=torch.Generator().manual_seed(0)).half().float(),
    torch.zeros(3),
    torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]]),
    torch.tensor([0.5, -0.5]),
)
WORDS = ("a", "cat", "on", "the", "red", "mat", "dog")


@pytest.fixture
def regions():
    torch.manual_seed(3)
    return Regions(
        torch.randn(6, 4, REGION_DIM).double(), torch.ones(6, 4) > 0, torch.rand(6, 4, 4).double()
    )


@pytest.fixture
def classifier(regions):
    combination = Logistic(np.array([0.1, -1.0]), np.array([0.5, 2.0]), np.array([3.0, 1.0]), 0.25)
    return SupportClassifier(("blank", "log_probability"), combination, 0.6, 0.3, regions[4:])


@pytest.fixture(scope="module")
def captioner(fitted_checkpoint):
    return sightline.load(fitted_checkpoint)


def test_verdicts_go_by_the_score(classifier):
    assert [classifier.verdict(s) for s in (0.0, 0.3, 0.31, 0.59, 0.6, 1.0)] == [
        *("not supported", "not supported", "doubtful", "doubtful", "seen", "seen")
    ]
    support = classifier.classify([{"blank": 0.6, "log_probability": -3.0, "gate": 0.5}])[0]
    assert support.score == pytest.approx(1 / (1 + np.exp(-(3.0 - 1.0 + 0.25))))
    assert support.evidence == {"blank": 0.6, "log_probability": -3.0}
    assert classifier.classify([]) == []


def test_content_words_are_checked_and_no_others(classifier, regions):
    model, vocabulary = create("soft_attention", 0), Vocabulary(WORDS)
    captions = [vocabulary.encode(text) for text in ("a cat on the red mat", "a zebra", "on the")]
    found = score_words(model, vocabulary, regions[:3], captions, regions[4:])
    assert found.places == [[1, 4, 5], [], []]  # a word that it does not know cannot be checked
    of_detector = {"detected", "frequency"}
    assert [set(scores) for scores in found.scores] == [set(MEANING) - of_detector] * 3
    assert list(
        score_words(model, vocabulary, regions[:3], captions, regions[4:], DETECTOR).scores[0]
    ) == [*MEANING]
    checked = classifier.check(model, vocabulary, regions[:3], captions)
    assert [[support is not None for support in own] for own in checked] == [
        [False, True, False, False, True, True],
        [False, False],
        [False, False],
    ]
    assert classifier.check(model, vocabulary, regions[:1], [[]]) == [[]]


def test_many_captions_are_checked_as_each_alone(classifier, regions, monkeypatch):
    model, vocabulary = create("transformer", 0), Vocabulary(WORDS)
    captions = [vocabulary.encode(text) for text in ("a cat", "a red dog on a mat", "the dog")]
    monkeypatch.setattr("sightline.support.classifier.BATCH", 2)
    together = classifier.check(model, vocabulary, regions[:3], captions)
    for n, caption in enumerate(captions):
        (alone,) = classifier.check(model, vocabulary, regions[n : n + 1], [caption])
        for one, other in zip(together[n], alone, strict=True):
            assert (one is None) == (other is None)
            assert one is None or one.score == pytest.approx(other.score)


def test_a_judge_is_the_same_after_loading(classifier, tmp_path):
    save_classifier(tmp_path, classifier)
    again = load_classifier(tmp_path)
    words = [{"blank": 0.3, "log_probability": -1.0}]
    assert again.classify(words) == classifier.classify(words)
    assert (again.seen, again.unsupported) == (classifier.seen, classifier.unsupported)
    torch.testing.assert_close(
        again.reference_regions.vectors,
        classifier.reference_regions.vectors.half().float(),
        rtol=0,
        atol=0,
    )


def test_an_absent_or_damaged_judge_is_one_clear_line(classifier, tmp_path):
    with pytest.raises(ConfigError, match=r"not fitted to check words; run sightline fit-supp"):
        load_classifier(tmp_path)
    save_classifier(tmp_path, classifier)
    whole = (tmp_path / FILE).read_bytes()
    for content in (
        b"",
        whole[:300],
        whole.replace(b"weights", b"weighty"),
        whole.replace(b"blank", b"blink"),
    ):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(CheckpointError, match=r"damaged, .*; run sightline fit-support again"):
            load_classifier(tmp_path)


def test_check_returns_the_same_caption_with_support(captioner, examples):
    caption = captioner.caption(examples / "cat.jpg")
    checked = captioner.check(examples / "cat.jpg", caption)
    assert isinstance(checked, Caption)
    assert checked.text == caption.text
    bare = [dataclasses.replace(word, support=None) for word in checked.words]
    assert bare == list(caption.words)
    supports = {word.text: word.support for word in checked.words}
    assert {word for word, support in supports.items() if support is None} <= {
        "a",
        "the",
        "of",
        "on",
    }
    for word in checked.words:
        if word.support:
            assert 0 <= word.support.score <= 1
            assert word.support.verdict in VERDICTS
            # The classifier weighs log-probabilities alone, which the caption has, too.
            assert word.support.evidence["log_probability"] == pytest.approx(
                word.log_probability, abs=1e-4
            )
    unsupported = [w for w in checked.words if w.support and w.support.score <= 0.4]
    assert list(checked.unsupported) == unsupported != []
    assert caption.unsupported == ()
    stored = json.loads(json.dumps(checked.to_json()))["words"]
    assert [word["support"] for word in stored] == [
        word.support and word.support.to_json() for word in checked.words
    ]


def test_captions_are_checked_as_they_are_made(captioner, examples):
    pictures = [examples / "cat.jpg", examples / "coffee.jpg"]
    found = captioner.captions(pictures, n_best=3, check=True)
    for picture, captions in zip(pictures, found, strict=True):
        assert len(captions) == 3
        for caption in captions:
            alone = captioner.check(picture, caption)
            for word, other in zip(caption.words, alone.words, strict=True):
                assert (word.support is None) == (other.support is None)
                if word.support and other.support:
                    assert word.support.score == pytest.approx(other.support.score, abs=1e-4)


def test_several_captioners_have_no_judge(fitted_checkpoint, examples):
    both = sightline.load(fitted_checkpoint, fitted_checkpoint)
    with pytest.raises(ConfigError, match="only by a single captioner from a checkpoint"):
        both.check(examples / "cat.jpg", both.caption(examples / "cat.jpg"))
