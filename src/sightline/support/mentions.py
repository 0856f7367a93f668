"""How often captions of a picture would mention a word, wherever in them."""

import functools

import torch
from torch import Tensor

from sightline.decoding.stepwise import SampleOptions, sample
from sightline.decoding.words import next_words
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.text.stemmer import stem
from sightline.text.vocabulary import PAD, SPECIAL, Vocabulary

SAMPLES = 10  # captions of each picture
_TOGETHER = 4  # pictures: a distribution over all words, at every place of all samples, is large


@torch.no_grad()
def mentions(model: CaptionModel, vocabulary: Vocabulary, regions: Regions) -> Tensor:
    """The expected number `(B, V)` of mentions of each word, or another form of it, in a caption.

    Captions are sampled, and the probabilities of all words at all their places summed: an average
    of expectations, far steadier than counting what was sampled. The samples of a picture depend on
    the picture alone.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("transformer", 6, 5, {"width": 4, "heads": 2}).eval()
    >>> regions = Regions(torch.ones(2, 3, 5), torch.ones(2, 3) > 0, torch.zeros(2, 3, 4))
    >>> mentions(model, Vocabulary(("dog", "dogs")), regions).shape
    torch.Size([2, 6])
    """
    parts = [
        _expected(model, regions[first : first + _TOGETHER])
        for first in range(0, len(regions), _TOGETHER)
    ]
    expected = torch.cat(parts)
    forms = _forms(vocabulary.words).to(expected.device)
    totals = expected.new_zeros(len(expected), int(forms.max()) + 1).index_add_(1, forms, expected)
    return totals[:, forms]


def _expected(model: CaptionModel, regions: Regions) -> Tensor:
    memory = model.encode(regions)
    captions = sample(model, memory, SampleOptions(SAMPLES, alike=True)).tokens
    probabilities = next_words(model, memory, captions).exp_()
    return (probabilities * (captions != PAD)[..., None]).sum((1, 2)) / SAMPLES


@functools.lru_cache(maxsize=4)
def _forms(words: tuple[str, ...]) -> Tensor:
    """A number for each word, the same for all forms of it; special words are forms of none."""
    numbers: dict[str, int] = {}
    keys = (word if n < len(SPECIAL) else stem(word) for n, word in enumerate(words))
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])
