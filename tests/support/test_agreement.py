"""How often sampled captions say a word again."""

import torch

from sightline.decoding.hypotheses import Hypotheses
from sightline.regions import Regions
from sightline.support.agreement import agreement
from sightline.text.vocabulary import END, PAD, Vocabulary
from tiny_models import REGION_DIM, create


def test_agreement_is_the_share_of_sampled_captions_that_say_a_word(monkeypatch):
    vocabulary = Vocabulary(("a", "dog", "runs", "running", "cat"))
    a, dog, runs, _, cat = range(4, 9)
    captions = torch.tensor([[[a, dog, runs, END], [a, cat, END, PAD]]])
    temperatures = []

    def sample(model, memory, options):
        temperatures.append(options.temperature)
        return Hypotheses(captions, torch.zeros(1, 2), torch.zeros(1, 2))

    monkeypatch.setattr("sightline.support.agreement.sample", sample)
    model = create("soft_attention", 0)
    regions = Regions(
        torch.randn(1, 4, REGION_DIM).double(), torch.ones(1, 4) > 0, torch.zeros(1, 4, 4).double()
    )
    shares = agreement(model, vocabulary, regions, [["dog", "running", "cat", "a"]])
    assert shares == [[0.5, 0.5, 0.5, 1.0]]
    assert temperatures == [0.5, 1.0]


def test_agreement_of_a_picture_does_not_depend_on_the_others():
    vocabulary = Vocabulary(("a", "cat", "on", "the", "red", "mat", "dog"))
    model = create("soft_attention", 0)
    torch.manual_seed(1)
    regions = Regions(
        torch.randn(5, 4, REGION_DIM).double(), torch.ones(5, 4) > 0, torch.zeros(5, 4, 4).double()
    )
    words = [vocabulary.to_json()] * 5
    together = agreement(model, vocabulary, regions, words)
    for n in range(5):
        assert agreement(model, vocabulary, regions[[n]], words[:1]) == together[n : n + 1]
    assert len(set(together[0])) > 2
