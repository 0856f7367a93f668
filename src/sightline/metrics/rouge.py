"""ROUGE-L (Lin 2004) as the COCO evaluation computes it."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from sightline.metrics.corpus import Corpus, Tokenizer
from sightline.metrics.ngrams import Captions, Ints
from sightline.metrics.score import Score
from sightline.text.tokenizer import tokenize

_BETA = 1.2  # recall counts more than precision
_CELLS = 1 << 17  # of one row of the tables of many pairs; small enough for the processor's cache
# The reference splits at spaces, so an empty caption is one empty word, which an empty reference
# matches. Padding must match nothing.
_EMPTY, _PAD_CANDIDATE, _PAD_REFERENCE = -1, -2, -3


class RougeL:
    """ROUGE-L fed batch by batch.

    >>> round(RougeL().add(["a dog runs"], [["a brown dog runs", "dogs"]]).score().corpus, 4)
    0.8356
    """

    def __init__(self, tokenizer: Tokenizer = tokenize) -> None:
        self.corpus = Corpus(tokenizer)

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        self.corpus.add(candidates, references)
        return self

    def score(self) -> Score:
        return self.of(self.corpus)

    def of(self, corpus: Corpus) -> Score:
        """Score a corpus whose word ids other metrics may share."""
        images, first = corpus.references.images, corpus.references.first
        candidates = _spell_out_empty(corpus.candidates)
        references = _spell_out_empty(corpus.references.captions)
        common = _longest_common(candidates, references, images)
        # Best precision and best recall, which need not come from the same reference.
        precision = np.maximum.reduceat(common / candidates.lengths[images], first)
        recall = np.maximum.reduceat(common / references.lengths, first)
        both = np.where(precision > 0, recall + _BETA**2 * precision, 1.0)
        per_image = (1 + _BETA**2) * precision * recall / both
        return Score("ROUGE-L", float(per_image.mean()), per_image)


def rouge_l(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer = tokenize,
) -> Score:
    """ROUGE-L of raw captions: the mean over pictures of an F-score of common subsequences.

    >>> rouge_l(["a dog runs"], [["a dog runs"]]).corpus
    1.0
    """
    return RougeL(tokenizer).add(candidates, references).score()


def _spell_out_empty(captions: Captions) -> Captions:
    if captions.lengths.all():
        return captions
    empty = captions.lengths == 0
    ids = np.insert(captions.ids, captions.starts[empty], _EMPTY)
    return Captions(ids, np.maximum(captions.lengths, 1))


def _longest_common(candidates: Captions, references: Captions, image: Ints) -> Ints:
    """Length of the longest common subsequence of each reference and its picture's candidate."""
    result = np.empty(len(image), np.int64)
    longer = np.maximum(candidates.lengths[image], references.lengths)
    order = np.argsort(-longer)  # pairs of one size side by side: little padding
    start = 0
    while start < len(order):
        longest = int(longer[order[start]])
        pairs = order[start : start + max(1, _CELLS // longest)]
        pairs = pairs[2 * longer[pairs] >= longest]
        candidate_words = _padded(candidates, image[pairs], _PAD_CANDIDATE)
        reference_words = _padded(references, pairs, _PAD_REFERENCE)
        row = np.zeros((len(candidate_words) + 1, len(pairs)), np.int32)
        for words in reference_words:
            # L[i, j] = max(L[i - 1, j], L[i, j - 1], L[i - 1, j - 1] + (words equal)); the second
            # term is a running maximum, so a whole row is computed at once, for all pairs.
            grown = np.maximum(row[1:], row[:-1] + (candidate_words == words))
            np.maximum.accumulate(grown, axis=0, out=row[1:])
        result[pairs] = row[-1]
        start += len(pairs)
    return result


def _padded(captions: Captions, chosen: Ints, pad: int) -> Ints:
    """The chosen captions as columns of one array."""
    lengths = captions.lengths[chosen]
    steps = np.arange(lengths.max())[:, None]
    inside = steps < lengths
    place = np.where(inside, captions.starts[chosen] + steps, 0)
    return np.where(inside, captions.ids[place], pad)
