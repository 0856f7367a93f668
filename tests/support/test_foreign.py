"""The judge of captions that others wrote: its scores, its fit, what it is fitted to."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from sightline.decoding.stepwise import SampleOptions, sample
from sightline.metrics.word_labels import label_words
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier, load_classifier, save_classifier
from sightline.support.fit import Sample, held_out_scores
from sightline.support.foreign import MEANING, ForeignClassifier, foreign_scores
from sightline.support.foreign_fit import DOUBTED, ForeignSample, fit_foreign
from sightline.support.logistic import Logistic
from sightline.support.mentions import SAMPLES, mentions
from sightline.support.swaps import Swapper
from sightline.text.vocabulary import END, START, Vocabulary
from tiny_models import REGION_DIM, create

VOCABULARY = Vocabulary(("a", "cat", "cats", "on", "red", "mat", "dog"))


@pytest.fixture
def regions() -> Regions:
    torch.manual_seed(3)
    return Regions(
        torch.randn(6, 4, REGION_DIM).double(), torch.ones(6, 4) > 0, torch.rand(6, 4, 4).double()
    )


def test_mentions_sum_a_words_probability_over_all_places_of_sampled_captions(regions) -> None:
    model = create("soft_attention", 0)
    found = mentions(model, VOCABULARY, regions[:2])
    memory = model.encode(regions[:2])
    captions = sample(model, memory, SampleOptions(SAMPLES, alike=True)).tokens
    dog, cat, cats = (VOCABULARY.id(word) for word in ("dog", "cat", "cats"))
    for b in range(2):
        expected = torch.zeros(len(VOCABULARY), dtype=torch.float64)
        for caption in captions[b].tolist():
            state = model.start(model.encode(regions[[b]]), 1)
            word = START
            for following in caption:  # one word after another, not in one pass
                step = model.step(torch.tensor([[word]]), state, model.encode(regions[[b]]))
                state = step.state
                expected += functional.softmax(step.logits[0, 0].double(), -1) / SAMPLES
                word = following
                if word == END:
                    break
        assert found[b, dog].item() == pytest.approx(expected[dog].item(), rel=1e-4)
        both = (expected[cat] + expected[cats]).item()  # forms of one word
        assert found[b, cat].item() == found[b, cats].item() == pytest.approx(both, rel=1e-4)


def test_scores_compare_the_picture_with_others(regions) -> None:
    model = create("transformer", 0)
    captions = [VOCABULARY.encode("a red cat"), VOCABULARY.encode("a zebra on a dog")]
    expected = mentions(model, VOCABULARY, regions[:2])
    prior = torch.full((len(VOCABULARY),), 0.1)
    first, second = foreign_scores(
        model, VOCABULARY, regions[:2], captions, [1, 0], regions[2:6], expected, prior
    )
    assert list(first) == [1, 2]
    assert list(second) == [4]  # a word that is unknown cannot be scored

    def log_prob(picture: int, caption: list[int], place: int) -> float:
        given = torch.tensor([[[START, *caption[:place]]]])
        logits = model(regions[[picture]], given).logits[0, 0, -1]
        return functional.log_softmax(logits, -1)[caption[place]].item()

    here = log_prob(1, captions[0], 2)
    there = np.mean([math.exp(log_prob(n, captions[0], 2)) for n in (3, 4, 5)])  # 2 is the blank
    cat = first[2]
    assert cat["log_probability"] == pytest.approx(here, abs=1e-4)
    assert cat["log_ratio"] == pytest.approx(here - math.log(there), abs=1e-4)
    mention = math.log(expected[1, VOCABULARY.id("cat")].item() + 1e-5)
    assert cat["mention"] == pytest.approx(mention, abs=1e-4)
    assert cat["mention_ratio"] == pytest.approx(mention - math.log(0.1 + 1e-5), abs=1e-4)


def test_swaps_are_wrong_words_of_the_same_kind_and_form() -> None:
    captions = ["two brown dogs running", "three cats sitting", "six red horses jumping", "a bus"]
    references = ["two brown dogs running on grass", "puppies run"]
    kinds = set()
    for seed in range(20):
        for swap in Swapper(captions).swaps("Two brown dogs running.", references, seed):
            kinds.add(swap.kind)
            new = swap.words[swap.place]
            assert not label_words([new], references)[0]
            others = [w for n, w in enumerate(swap.words) if n != swap.place]
            assert others == [
                w for n, w in enumerate(["two", "brown", "dogs", "running"]) if n != swap.place
            ]
            assert (
                new
                in {
                    "number": ("three", "six"),
                    "colour": ("red",),
                    "object": ("cats", "horses"),
                    "action": ("sitting", "jumping"),
                }[swap.kind]
            )
    assert kinds == {"number", "colour", "object", "action"}


def foreign_sample(seed: int = 0, words: int = 2000) -> ForeignSample:
    random = np.random.default_rng(seed)
    right = random.random(words) < 0.6
    scores = random.normal(right[:, None] * [1.5, 0.5], 1.0)
    sample = Sample(
        ("log_ratio", "mention"), scores, right, np.arange(words) // 4, ("dog",) * words
    )
    return ForeignSample(sample, torch.full((len(VOCABULARY),), 0.1))


def test_the_fit_seldom_doubts_what_people_wrote() -> None:
    collected = foreign_sample()
    judge = fit_foreign(collected)
    assert judge is not None
    scores = held_out_scores(collected.sample)
    right = collected.sample.right
    verdicts = np.array([judge.verdict(score) for score in scores])
    assert 0 < (verdicts[right] == "not supported").mean() <= DOUBTED + 1e-9
    assert (verdicts[~right] == "not supported").mean() > 3 * DOUBTED
    for each in judge.calibration:
        if each["words"] > 100:
            assert each["right"] == pytest.approx(each["support"], abs=0.1)


def test_a_few_words_are_not_fitted_to() -> None:
    assert fit_foreign(foreign_sample(words=8)) is None
    assert fit_foreign(None) is None


def test_the_judge_is_the_same_after_loading(regions, tmp_path) -> None:
    judge = fit_foreign(foreign_sample())
    own = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    classifier = SupportClassifier(("blank",), own, 0.6, 0.3, regions[4:], foreign=judge)
    save_classifier(tmp_path, classifier)
    again = load_classifier(tmp_path).foreign
    assert isinstance(again, ForeignClassifier)
    words = [{"log_ratio": 0.3, "mention": -1.0}]
    assert again.classify(words) == judge.classify(words)
    assert again.calibration == judge.calibration
    torch.testing.assert_close(again.prior, judge.prior)
    save_classifier(tmp_path, dataclasses.replace(classifier, foreign=None))
    assert load_classifier(tmp_path).foreign is None
    assert set(judge.names) <= set(MEANING)
