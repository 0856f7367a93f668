"""How often a captioner that is asked again says a word again."""

import functools
from collections.abc import Sequence

import torch

from sightline.decoding.stepwise import SampleOptions, sample
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.text.stemmer import stem
from sightline.text.vocabulary import SPECIAL, Vocabulary

SAMPLES = 10  # captions at each temperature
TEMPERATURES = (0.5, 1.0)

_stem = functools.cache(stem)


@torch.no_grad()
def agreement(
    model: CaptionModel, vocabulary: Vocabulary, regions: Regions, words: Sequence[Sequence[str]]
) -> list[list[float]]:
    """For some words of each of B pictures, the share of sampled captions that say them.

    Another form of a word counts (`runs` for `running`). The samples of a picture depend on the
    picture alone: all pictures are sampled with the same random numbers.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("transformer", 6, 5, {"width": 4, "heads": 2}).eval()
    >>> regions = Regions(torch.ones(1, 3, 5), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> shares = agreement(model, Vocabulary(("a", "dog")), regions, [["a", "dog"]])
    >>> [0 <= share <= 1 for share in shares[0]]
    [True, True]
    """
    memory = model.encode(regions)
    said: list[list[set[str]]] = [[] for _ in words]  # the stems of each caption, of each picture
    for temperature in TEMPERATURES:
        options = SampleOptions(SAMPLES, temperature, alike=True)
        for stems, captions in zip(
            said, sample(model, memory, options).tokens.tolist(), strict=True
        ):
            said_ids = [[word for word in caption if word >= len(SPECIAL)] for caption in captions]
            stems += [{_stem(span.text) for span in vocabulary.spans(ids)} for ids in said_ids]
    return [
        [sum(_stem(word) in stems for stems in captions) / len(captions) for word in row]
        for row, captions in zip(words, said, strict=True)
    ]
