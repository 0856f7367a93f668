"""The judge of captions that others wrote.

A captioner's own words are all likely ones, and the scores of `word_scores` compare probabilities.
People say a thing in their own way: their words are unlikely, right or wrong. So here logarithms
are compared, of a word's probability with the picture and without it, both where the caption says
it and anywhere in captions of the picture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from sightline.captions import Support
from sightline.decoding.words import with_start
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.support.mentions import mentions
from sightline.support.word_classifier import WordClassifier
from sightline.support.word_detector import WordDetector
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import PAD, Vocabulary

MEANING = {
    "log_probability": "log-probability of the word",
    "log_ratio": "how much likelier the word is here than of other pictures (a logarithm)",
    "mention": "how often captions of this picture would mention the word (a logarithm)",
    "mention_ratio": "how much oftener than captions of other pictures (a logarithm)",
    "detected": "evidence of a detector of words that reads no caption, in log-odds",
}
BATCH = 16  # captions that are scored at once
_RARE = 1e-5  # mentions in a caption: less is the same


@dataclass(frozen=True, eq=False)
class ForeignClassifier(WordClassifier):
    """Fitted to captions that people wrote, and to the same with words swapped."""

    prior: Tensor  # (V,): how often a caption of any picture mentions each word
    # Of words with about the same support, how many were right: bins of `low`, `high`, `words`,
    # `support` (their mean) and `right` (a share).
    calibration: tuple[dict[str, Any], ...] = ()

    def check(
        self,
        model: CaptionModel,
        vocabulary: Vocabulary,
        regions: Regions,
        captions: Sequence[Sequence[int]],
        pictures: Sequence[int],
        reference_regions: Regions,
        detector: WordDetector | None = None,
    ) -> list[list[Support | None]]:
        """The support of each word; None for what is no content word.

        Captions are word ids without start and end; `pictures` numbers the picture of each.
        """
        batches = (regions[n : n + BATCH] for n in range(0, len(regions), BATCH))
        expected = torch.cat([mentions(model, vocabulary, batch) for batch in batches])
        scored = foreign_scores(
            model,
            vocabulary,
            regions,
            captions,
            pictures,
            reference_regions,
            expected,
            self.prior,
            detector,
        )
        checked: list[list[Support | None]] = []
        for caption, words in zip(captions, scored, strict=True):
            supports: list[Support | None] = [None] * len(caption)
            for place, support in zip(words, self.classify([*words.values()]), strict=True):
                supports[place] = support
            checked.append(supports)
        return checked


def foreign_scores(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    pictures: Sequence[int],
    reference_regions: Regions,
    expected: Tensor,
    prior: Tensor,
    detector: WordDetector | None = None,
) -> list[dict[int, dict[str, float]]]:
    """Of each caption, the single scores of its content words by their places.

    `reference_regions` are a blank, then other pictures. `expected` are the mentions `(B, V)` of
    words in captions of each picture, and `prior` those in captions of any picture, `(V,)` or
    `(B, V)`. Without a `detector`, what it says is left out.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("transformer", 6, 5, {"width": 4, "heads": 2}).eval()
    >>> regions = Regions(torch.ones(1, 3, 5), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> vocabulary, others = Vocabulary(("dog", "cat")), regions[[0, 0]]
    >>> said = mentions(model, vocabulary, regions)
    >>> (scores,) = foreign_scores(model, vocabulary, regions, [[4]], [0], others, said, said)
    >>> abs(scores[0]["log_ratio"]) < 1e-5  # the other picture is the picture itself
    True
    """
    mention = (expected + _RARE).log()
    ratio = mention - (prior.to(expected) + _RARE).log()
    scored: list[dict[int, dict[str, float]]] = []
    for first in range(0, len(captions), BATCH):
        some, rows = captions[first : first + BATCH], list(pictures[first : first + BATCH])
        log_probs, log_ratios = _in_context(model, regions[rows], some, reference_regions)
        for n, (caption, row) in enumerate(zip(some, rows, strict=True)):
            scored.append(
                {
                    place: {
                        "log_probability": float(log_probs[n, place]),
                        "log_ratio": float(log_ratios[n, place]),
                        "mention": float(mention[row, word]),
                        "mention_ratio": float(ratio[row, word]),
                    }
                    for place, word in enumerate(caption)
                    if is_content(vocabulary.words[word])
                }
            )
    if detector is not None:
        said = [
            [vocabulary.words[caption[place]] for place in words]
            for caption, words in zip(captions, scored, strict=True)
        ]
        detected = detector.scores(regions[list(pictures)], said)
        for words, evidence in zip(scored, detected, strict=True):
            for single_scores, (value, _) in zip(words.values(), evidence, strict=True):
                single_scores["detected"] = value
    return scored


@torch.no_grad()
def _in_context(
    model: CaptionModel,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    reference_regions: Regions,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities `(B, T)` of the words, and how far above the mean of other pictures."""
    tokens = pad_sequence([torch.tensor(caption) for caption in captions], True, PAD)
    tokens = tokens.to(regions.mask.device)
    given = with_start(tokens)
    here = _chosen(model(regions, given[:, None]).logits[:, 0], tokens)
    others = reference_regions[list(range(1, len(reference_regions)))]
    there = _chosen(
        model(others, given[None].expand(len(others), -1, -1)).logits,
        tokens.expand(len(others), -1, -1),
    )
    return here, here - (there.logsumexp(0) - math.log(len(others)))


def _chosen(logits: Tensor, words: Tensor) -> Tensor:
    return functional.log_softmax(logits, -1).gather(-1, words[..., None]).squeeze(-1)
