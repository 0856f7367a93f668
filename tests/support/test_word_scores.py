"""The single scores of words, for every captioner."""

import pytest
import torch

from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.regions import Regions
from sightline.support.word_scores import MEANING, word_scores
from tiny_models import CASES, REGION_DIM, VOCABULARY, create

every_model = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True, True, True, False, True, True]]).repeat(5, 1)
    return Regions(torch.randn(5, 6, REGION_DIM).double(), mask, torch.rand(5, 6, 4).double())


def ask(model, regions, tokens, places):
    tokens, places = torch.tensor(tokens), torch.tensor(places)
    words = torch.cat([tokens[:, 1:], tokens[:, :1]], 1).gather(1, places)
    return Targets(model, regions, tokens[:, None], places, words)


@every_model
def test_a_batch_equals_its_captions_one_by_one_and_later_words_do_not_count(case, regions):
    model, pictures, reference_regions = create(*case), regions[:2], regions[2:]
    tokens = [[1, 4, 7, 5, 6], [1, 9, 8, 2, 0]]
    together = word_scores(ask(model, pictures, tokens, [[0, 2], [1, 0]]), reference_regions)
    assert set(MEANING) - set(together) <= {"gate", "agreement", "detected", "frequency"}
    alone = word_scores(ask(model, pictures[:1], [[1, 4, 7, 5, 10]], [[2]]), reference_regions)
    other = word_scores(ask(model, pictures[1:], [[1, 9, 8]], [[0]]), reference_regions)
    for name, scores in together.items():
        assert scores.shape == (2, 2)
        assert scores.isfinite().all()
        torch.testing.assert_close(scores[0, 1], alone[name][0, 0])
        torch.testing.assert_close(scores[1, 1], other[name][0, 0])


@pytest.mark.parametrize("case", [("grid_td", 0), ("transformer", 0), ("soft_attention", 0)])
def test_each_is_what_it_says(case, regions):
    model = create(*case)
    targets = ask(model, regions[:1], [[1, 4, 7, 5]], [[1]])
    scores = {name: s.item() for name, s in word_scores(targets, regions[2:]).items()}
    there = regions.mask[0]
    relevance = lrp(targets).regions[0, 0][there]
    assert scores["relevance_mean"] == pytest.approx(relevance.mean().item())
    assert scores["relevance_max"] == pytest.approx(relevance.max().item())
    positive = relevance.clamp(min=0).sum() / relevance.abs().sum()
    assert scores["relevance_sign"] == pytest.approx(positive.item())

    def probability(seen: Regions) -> float:
        return model(seen, targets.tokens).logits[0, 0, 1].softmax(-1)[7].item()

    p = probability(regions[:1])
    assert scores["log_probability"] == pytest.approx(torch.tensor(p).double().log().item())
    assert scores["blank"] == pytest.approx(p - probability(regions[2:3]))
    others = (probability(regions[3:4]) + probability(regions[4:5])) / 2
    assert scores["other_picture"] == pytest.approx(p - others)
    mask = regions.mask[:1].clone()
    mask[0, there.nonzero()[relevance.argmax()]] = False  # a quarter of five, rounded down
    hidden = Regions(regions.vectors[:1], mask, regions.boxes[:1])
    assert scores["occlusion"] == pytest.approx(p - probability(hidden))
    unrolled = model(regions[:1], targets.tokens)
    assert scores["attention_max"] == pytest.approx(unrolled.attention[0, 0, 1].max().item())
    if case[0] == "grid_td":
        assert scores["gate"] == pytest.approx(1 - unrolled.signals["sentinel"][0, 0, 1].item())
    if case[0] == "soft_attention":
        assert scores["gate"] == pytest.approx(unrolled.signals["beta"][0, 0, 1].item())


def test_a_picture_of_one_region_cannot_lose_it(regions):
    model = create("transformer", 0)
    one = Regions(regions.vectors[:, :1], regions.mask[:, :1], regions.boxes[:, :1])
    targets = ask(model, one[:1], [[1, VOCABULARY - 1, 4]], [[0]])
    assert word_scores(targets, one[1:])["occlusion"].item() == pytest.approx(0, abs=1e-12)
