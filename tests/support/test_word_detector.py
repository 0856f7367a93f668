"""A detector of words, on pictures whose words are known."""

import numpy as np
import pytest
import torch

from sightline.errors import CheckpointError, DataError
from sightline.metrics.auc import auc
from sightline.regions import Regions
from sightline.support.classifier import (
    FILE,
    SupportClassifier,
    load_classifier,
    save_classifier,
)
from sightline.support.fit import UNSURE, Sample, fit_classifier, found_of_captions
from sightline.support.logistic import Logistic
from sightline.support.word_detector import FEWEST_PICTURES, WordDetector, fit_detector, pooled

THINGS = ("dog", "bicycle", "tree", "umbrella", "kite", "horse")


def pictures(count: int, seed: int) -> tuple[Regions, np.ndarray]:
    """Each thing is there or not; it lights one number of one of four regions, amid noise."""
    random = np.random.default_rng(seed)
    there = random.random((count, len(THINGS))) < np.linspace(0.5, 0.1, len(THINGS))
    vectors = random.normal(size=(count, 4, 8))
    for picture, row in enumerate(there):
        for thing in np.flatnonzero(row):
            vectors[picture, random.integers(4), thing] += 4
    mask = torch.ones(count, 4, dtype=torch.bool)
    return Regions(torch.from_numpy(vectors).float(), mask, torch.zeros(count, 4, 4)), there


def captions(there: np.ndarray) -> list[list[str]]:
    return [
        [f"there is a {thing}" for thing, here in zip(THINGS, row, strict=True) if here]
        or ["nothing"]
        for row in there
    ]


@pytest.fixture(scope="module")
def detector() -> WordDetector:
    regions, there = pictures(1500, 0)
    batches = (regions[first : first + 100] for first in range(0, 1500, 100))
    return fit_detector(batches, captions(there))


def test_it_tells_the_things_of_new_pictures(detector: WordDetector) -> None:
    regions, there = pictures(400, 1)
    scores = np.array(detector.scores(regions, [THINGS] * 400))
    of_picture = np.arange(400).repeat(len(THINGS))
    evidence, prior = scores[..., 0].ravel(), scores[..., 1].ravel()
    assert auc(evidence, there.ravel(), of_picture, "evidence").corpus > 0.95
    # Both together are log-odds: of words with a probability of 0.9, nine in ten are right.
    chance = 1 / (1 + np.exp(-evidence - prior))
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):
        chosen = (chance >= low) & (chance <= high)
        assert chance[chosen].mean() == pytest.approx(there.ravel()[chosen].mean(), abs=0.08)


def test_words_of_a_stem_are_one_and_a_prior_is_how_common_they_are(detector: WordDetector) -> None:
    regions, there = pictures(1500, 0)
    (row,) = detector.scores(regions[:1], [["dog", "dogs", "puppy", "espresso"]])
    assert row[0] == row[1] != row[2] == row[3] == (0.0, float(detector.prior.min()))
    share = there[:, 0].mean()
    assert row[0][1] == pytest.approx(np.log(share / (1 - share)), abs=1e-2)


def test_masked_regions_do_not_count(detector: WordDetector) -> None:
    regions, _ = pictures(3, 2)
    more = Regions(
        torch.cat([regions.vectors, 9 * torch.ones(3, 2, 8)], 1),
        torch.cat([regions.mask, torch.zeros(3, 2) > 0], 1),
        torch.zeros(3, 6, 4),
    )
    torch.testing.assert_close(pooled(more), pooled(regions))


def test_it_is_the_same_when_fitted_again_and_needs_enough_pictures(detector: WordDetector) -> None:
    regions, there = pictures(1500, 0)
    again = fit_detector([regions], captions(there))
    torch.testing.assert_close(again.weight, detector.weight)
    with pytest.raises(DataError, match="at least 1,000 pictures"):
        fit_detector([regions], captions(there)[: FEWEST_PICTURES - 1])


def test_a_classifier_stores_it(detector: WordDetector, tmp_path) -> None:
    regions, _ = pictures(2, 3)
    one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    save_classifier(
        tmp_path, SupportClassifier(("detected",), one, 0.8, 0.3, regions, detector, -0.5)
    )
    stored = load_classifier(tmp_path)
    assert stored.unsure == -0.5
    assert stored.detector is not None
    assert stored.detector.stems == detector.stems
    assert stored.detector.scores(regions, [THINGS] * 2) == detector.scores(regions, [THINGS] * 2)
    # Without the detector that its scores need, or with one whose parts do not fit, it is damaged.
    save_classifier(tmp_path, SupportClassifier(("detected",), one, 0.8, 0.3, regions))
    with pytest.raises(CheckpointError, match="damaged"):
        load_classifier(tmp_path)
    fewer = WordDetector(detector.stems[1:], *detector._tensors())
    save_classifier(tmp_path, SupportClassifier(("detected",), one, 0.8, 0.3, regions, fewer))
    with pytest.raises(CheckpointError, match="damaged"):
        load_classifier(tmp_path)
    assert (tmp_path / FILE).exists()


def test_captions_of_which_little_is_found_are_told(detector: WordDetector) -> None:
    regions, there = pictures(60, 4)
    one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    classifier = SupportClassifier(("detected",), one, 0.8, 0.3, regions[:2], detector, -1.0)
    right = [["a", *(t for t, here in zip(THINGS, row, strict=True) if here)] for row in there]
    wrong = [["a", *(t for t, here in zip(THINGS, row, strict=True) if not here)] for row in there]
    assert np.mean(classifier.finds_little(regions, right)) < 0.1
    assert np.mean(classifier.finds_little(regions, wrong)) > 0.9
    assert classifier.finds_little(regions[:1], [["a", "the"]]) == [False]  # nothing is said
    blind = SupportClassifier(("blank",), one, 0.8, 0.3, regions[:2])
    assert blind.finds_little(regions, wrong) == [False] * 60


def test_the_share_of_captions_that_are_told_is_fitted() -> None:
    random = np.random.default_rng(0)
    scores = np.concatenate([random.normal(size=(3000, 2)), random.normal(size=(3000, 1))], 1)
    right = scores[:, 2] + random.normal(size=3000) > 0
    sample = Sample(
        ("detected", "frequency", "blank"), scores, right, np.arange(3000) // 3, ("dog",) * 3000
    )
    regions, _ = pictures(2, 3)
    unused = WordDetector((), *[torch.zeros(0)] * 5)
    classifier = fit_classifier(sample, regions, unused)
    found = found_of_captions(sample)
    assert len(found) == 1000
    assert found[7] == pytest.approx(scores[21:24, :2].sum(1).mean())
    assert np.mean([each < classifier.unsure for each in found.values()]) == pytest.approx(
        UNSURE, abs=2e-3
    )
