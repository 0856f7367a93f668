"""Fitting a classifier on words whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sightline
from sightline.data.scenes import make_scenes
from sightline.encoders.encode import encode_pictures
from sightline.encoders.region_cache import RegionCache
from sightline.errors import DataError
from sightline.metrics.word_labels import label_words
from sightline.regions import Regions
from sightline.support.fit import (
    OTHERS,
    Sample,
    auc_table,
    choose_others,
    collect,
    combined_scores,
    fit_classifier,
    held_out_scores,
    isotonic,
    make_reference_regions,
    thresholds,
    verdict_counts,
)

NOWHERE = Regions(torch.zeros(2, 1, 3), torch.ones(2, 1) > 0, torch.zeros(2, 1, 4))


@pytest.fixture
def sample():
    """One score that tells, one that does not, and one that tells the other way round."""
    random = np.random.default_rng(0)
    right = random.random(900) < 0.6
    noise = random.normal(size=(900, 3))
    scores = noise + right[:, None] * [1.5, 0.0, -1.5]
    return Sample(
        ("blank", "gate", "occlusion"),
        scores,
        right,
        np.arange(900) // 3,
        ("dog", "cat", "red") * 300,
    )


def test_the_combination_beats_each_score_and_is_calibrated(sample):
    classifier = fit_classifier(sample, NOWHERE)
    held_out = held_out_scores(sample)
    tells, says_nothing, against, combined = (s.corpus for s in auc_table(sample, held_out))
    assert 0.8 < tells < combined
    assert 0.45 < says_nothing < 0.55
    assert against < 0.2
    assert combined > 0.9
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        there = (held_out > low) & (held_out <= high)
        assert held_out[there].mean() == pytest.approx(sample.right[there].mean(), abs=0.1)
    assert combined_scores(sample, classifier) == pytest.approx(held_out, abs=0.1)


def test_a_fold_is_scored_by_weights_that_never_saw_it(sample):
    before = held_out_scores(sample)
    right = sample.right.copy()
    right[sample.pictures % 5 == 0] ^= True
    after = held_out_scores(
        Sample(sample.names, sample.scores, right, sample.pictures, sample.words)
    )
    own = sample.pictures % 5 == 0
    np.testing.assert_array_equal(after[own], before[own])
    assert not np.allclose(after[~own], before[~own])


def test_verdicts_are_chosen_by_two_to_one():
    random = np.random.default_rng(0)
    scores = random.random(6000)
    right = random.random(6000) < scores  # calibrated
    seen, unsupported = thresholds(scores, right)
    assert seen == pytest.approx(2 / 3, abs=0.05)
    assert unsupported == pytest.approx(1 / 3, abs=0.05)
    assert thresholds(scores, scores > 0.5) == pytest.approx((0.5, 0.5), abs=0.01)
    # Three of four words that are marked are wrong, also where none is surely wrong.
    noisy = np.random.default_rng(1).random(6000) < np.where(scores < 0.5, 0.31, 0.9)
    assert thresholds(scores, noisy)[1] < 0.1
    # Where nothing is told apart, nothing is said of any word.
    assert thresholds(scores[:500], np.arange(500) % 2 == 0)[0] > 0.9


def test_isotonic_never_falls_and_keeps_the_mean():
    values = np.random.default_rng(0).normal(size=50)
    found = isotonic(values)
    assert (np.diff(found) >= 0).all()
    assert found.mean() == pytest.approx(values.mean())


def test_words_are_counted_by_verdict(sample):
    classifier = fit_classifier(sample, NOWHERE)
    counts = verdict_counts(classifier, combined_scores(sample, classifier), sample.right)
    assert sum(words for words, _ in counts.values()) == 900
    shares = {verdict: right / words for verdict, (words, right) in counts.items()}
    assert shares["not supported"] < 0.25
    assert shares["seen"] > 0.8
    dogs = sample.only(np.array(sample.words) == "dog")
    assert set(dogs.words) == {"dog"}
    assert len(dogs.right) == len(dogs.scores) == 300


def test_too_few_wrong_words_are_refused(sample):
    few = sample.right | (np.cumsum(~sample.right) <= 9)
    with pytest.raises(
        DataError, match=r"are right by the references and 9 wrong: at least 10 of each"
    ):
        fit_classifier(sample.only(few), NOWHERE)


def test_words_of_captioned_pictures(checkpoint, tmp_path):
    captioner = sightline.load(checkpoint)
    scenes = make_scenes(20, seed=5, size=64)
    scenes = [replace(scene, captions=("a red cup",), groundings=()) for scene in scenes]
    cache = RegionCache.for_encoder(captioner.encoder, tmp_path)
    encode_pictures([scene.picture for scene in scenes], captioner.encoder, cache)
    others, rest = choose_others(scenes)
    reference_regions = make_reference_regions([image.picture for image in others], cache)
    assert len(reference_regions) == 1 + OTHERS
    assert len(rest) == 20 - OTHERS
    torch.testing.assert_close(
        reference_regions.vectors[0, 3],
        reference_regions.vectors[1:].mean((0, 1)),
        rtol=1e-3,
        atol=1e-3,
    )
    sample = collect(
        captioner.model, captioner.vocabulary, captioner.options, rest, cache, reference_regions
    )
    captions = captioner.caption([scene.picture for scene in rest])
    content = [
        (word.text, word.log_probability, label_words([word.text], scene.captions)[0], n)
        for n, (caption, scene) in enumerate(zip(captions, rest, strict=True))
        for word in caption.words
        if word.text not in ("a", "the", "of", "on")
    ]
    words, log_probs, right, pictures = zip(*content, strict=True)
    assert sample.words == words
    np.testing.assert_array_equal(sample.right, right)
    assert 0 < sample.right.mean() < 1
    np.testing.assert_array_equal(sample.pictures, pictures)
    found = sample.scores[:, sample.names.index("log_probability")]
    np.testing.assert_allclose(found, log_probs, atol=2e-3)
    with pytest.raises(DataError, match="3 pictures are too few"):
        choose_others(scenes[:3])
