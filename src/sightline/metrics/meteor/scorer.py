"""METEOR 1.5 (Denkowski and Lavie 2014) as the COCO evaluation computes it.

A candidate is aligned with each of its references through equal words, equal stems, synonyms and
paraphrases. Weighted precision and recall of the alignment are combined, and the number of chunks
it falls into is penalised. The best reference counts.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from sightline.errors import DataError
from sightline.metrics.corpus import Tokenizer, check_shapes
from sightline.metrics.meteor import data as meteor_data
from sightline.metrics.meteor.alignment import align
from sightline.metrics.meteor.data import Caption
from sightline.metrics.meteor.matching import MATCHERS, Candidate, Match
from sightline.metrics.score import Floats, Score
from sightline.text.tokenizer import tokenize

# METEOR's English parameters for ranking systems: the balance of precision and recall, the shape
# and weight of the chunk penalty, the weight of content words beside function words.
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_WEIGHTS = (1.0, 0.6, 0.8, 0.6)  # of exact, stem, synonym and paraphrase matches

_BATCH = 2000  # pictures whose captions are looked up together


class Meteor:
    """METEOR fed batch by batch.

    The corpus value scores the summed counts of all pictures; it is not the mean of `per_image`.

    >>> Meteor().add(["a dog runs"], [["a dog runs", "the dog is running"]]).score().corpus
    1.0
    """

    def __init__(self, tokenizer: Tokenizer = tokenize) -> None:
        self.tokenizer = tokenizer
        self._data = meteor_data.load()
        self._statistics: list[Floats] = []

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        """Take one candidate and one or more references for each of some more pictures."""
        check_shapes(candidates, references)
        for start in range(0, len(candidates), _BATCH):
            batch = slice(start, start + _BATCH)
            self._statistics.append(self._score_batch(candidates[batch], references[batch]))
        return self

    def score(self) -> Score:
        if not self._statistics:
            raise DataError("there is nothing to score: no candidate was given")
        statistics = np.concatenate(self._statistics)
        corpus = float(_meteor(statistics.sum(axis=0)))
        return Score("METEOR", corpus, _meteor(statistics), statistics, _meteor)

    def _score_batch(
        self, candidates: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Floats:
        """The counts of each picture against its best reference, the first of equals."""
        candidate_captions = self._captions(candidates)
        reference_captions = iter(self._captions([text for texts in references for text in texts]))
        counts = []
        for caption, texts in zip(candidate_captions, references, strict=True):
            candidate = Candidate(caption, self._data)
            for reference in (next(reference_captions) for _ in texts):
                chosen = align(candidate.match(reference), len(caption.words))
                counts.append(_count(caption, reference, chosen))
        statistics = np.array(counts, np.float64)
        values = _meteor(statistics)
        ends = np.cumsum([len(texts) for texts in references])[:-1]
        best = [part.argmax() for part in np.split(values, ends)]
        return statistics[np.concatenate([[0], ends]) + best]

    def _captions(self, texts: Sequence[str]) -> list[Caption]:
        return self._data.captions([" ".join(self.tokenizer(text)) for text in texts])


def meteor(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer = tokenize,
) -> Score:
    """METEOR of raw captions, over the corpus and for each picture.

    Needs the extra `meteor`; its data is indexed into the user's cache the first time.

    >>> score = meteor(["a puppy is running"], [["a dog runs", "the dog ran"]])
    >>> 0 < score.corpus < 1
    True
    """
    return Meteor(tokenizer).add(candidates, references).score()


def _count(candidate: Caption, reference: Caption, chosen: Sequence[Match]) -> list[int]:
    """The counts METEOR sums: candidate and reference side by side wherever there are two.

    Words; function words; for each matcher the matched content words, then function words; chunks;
    matched words.
    """
    candidate_words, reference_words = candidate.words, reference.words
    matched = [0] * (4 * len(MATCHERS))
    candidate_matched = reference_matched = chunks = 0
    candidate_end = reference_end = -1
    for start, length, other, other_length, matcher in chosen:
        for word in candidate_words[other : other + other_length]:
            matched[4 * matcher + 2 * word.is_function] += 1
        for word in reference_words[start : start + length]:
            matched[4 * matcher + 2 * word.is_function + 1] += 1
        candidate_matched += other_length
        reference_matched += length
        chunks += other != candidate_end or start != reference_end
        candidate_end, reference_end = other + other_length, start + length
    lengths = [len(candidate_words), len(reference_words)]
    if chunks == 1 and [candidate_matched, reference_matched] == lengths:
        chunks = 0  # in one piece from end to end: no penalty, neither here nor in the corpus
    functions = [
        sum(word.is_function for word in words) for words in (candidate_words, reference_words)
    ]
    return [*lengths, *functions, *matched, chunks, candidate_matched, reference_matched]


def _meteor(sums: Floats) -> Floats:
    """METEOR from summed counts of shape `(..., 23)`."""
    lengths, functions, matched = sums[..., 0:2], sums[..., 2:4], sums[..., 4:20]
    chunks, aligned = sums[..., 20], sums[..., 21:23]
    total = _DELTA * (lengths - functions) + (1 - _DELTA) * functions
    weighted = np.zeros_like(total)
    # In METEOR's order, content words first: references whose values tie do so to the last bit.
    for function, share in ((0, _DELTA), (1, 1 - _DELTA)):
        for matcher, weight in zip(MATCHERS, _WEIGHTS, strict=True):
            column = 4 * matcher + 2 * function
            weighted = weighted + matched[..., column : column + 2] * weight * share
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.moveaxis(weighted / total, -1, 0)
        mean = 1 / ((1 - _ALPHA) / precision + _ALPHA / recall)
        penalty = _GAMMA * (chunks / (aligned.sum(axis=-1) / 2)) ** _BETA
        value = mean * (1 - penalty)
    return np.asarray(np.where(np.isnan(value), 0.0, value))  # nothing matched, or nothing there
