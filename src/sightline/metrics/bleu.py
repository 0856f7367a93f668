"""BLEU-1 to BLEU-4 (Papineni et al. 2002) as the COCO evaluation computes them."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from sightline.metrics.corpus import Corpus, Tokenizer
from sightline.metrics.ngrams import ORDERS
from sightline.metrics.score import Floats, Score
from sightline.text.tokenizer import tokenize

# The COCO evaluation adds these to keep 0 / 0 finite; they show in per-image values.
_TINY, _SMALL = 1e-15, 1e-9


class Bleu:
    """BLEU-1..4 fed batch by batch.

    `brevity_penalty=False` leaves out the factor exp(1 - r / c) for candidates shorter than their
    references, as paper 1 reports it.

    >>> [round(score.corpus, 4) for score in Bleu().add(["a b c"], [["a b c d"]]).scores()]
    [0.7165, 0.7165, 0.7165, 0.0227]
    """

    def __init__(self, brevity_penalty: bool = True, tokenizer: Tokenizer = tokenize) -> None:
        self.brevity_penalty = brevity_penalty
        self.corpus = Corpus(tokenizer)

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        self.corpus.add(candidates, references)
        return self

    def scores(self) -> tuple[Score, ...]:
        return self.of(self.corpus)

    def of(self, corpus: Corpus) -> tuple[Score, ...]:
        """Score a corpus whose n-grams other metrics may share."""
        statistics = _statistics(corpus)
        total = statistics.sum(axis=0)
        scores = []
        for order in ORDERS:

            def combine(sums: Floats, order: int = order) -> Floats:
                return _bleu(sums, order, self.brevity_penalty)

            value = float(combine(total))
            name = f"BLEU-{order}" if self.brevity_penalty else f"BLEU-{order} (no BP)"
            scores.append(Score(name, value, combine(statistics), statistics, combine))
        return tuple(scores)


def bleu(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    brevity_penalty: bool = True,
    tokenizer: Tokenizer = tokenize,
) -> tuple[Score, ...]:
    """BLEU-1, BLEU-2, BLEU-3 and BLEU-4 of raw captions, over the corpus and for each picture.

    >>> bleu(["a dog runs"], [["a dog runs", "the dog is running"]])[0].corpus > 0.999
    True
    """
    return Bleu(brevity_penalty, tokenizer).add(candidates, references).scores()


def _statistics(corpus: Corpus) -> Floats:
    """Per picture: clipped matches and n-grams of each order, length, closest reference length."""
    lengths = corpus.candidates.lengths
    columns = []
    for overlap in corpus.overlap:
        counts = overlap.candidate_counts
        in_reference = overlap.reference_counts.count[overlap.reference_entry]
        ceiling = np.zeros(len(counts.count), np.int64)
        np.maximum.at(ceiling, overlap.candidate_entry, in_reference)
        clipped = np.minimum(counts.count, ceiling)
        columns.append(np.bincount(counts.caption, clipped, minlength=len(lengths)))
    columns += [np.maximum(0, lengths - order + 1) for order in ORDERS]
    return np.stack([*columns, lengths, _closest_lengths(corpus)], axis=1).astype(np.float64)


def _closest_lengths(corpus: Corpus) -> Floats:
    """Of each picture's reference lengths the one nearest the candidate's, the shorter of two."""
    references = corpus.references
    reference_lengths = references.captions.lengths
    distance = np.abs(reference_lengths - corpus.candidates.lengths[references.images])
    longest = int(reference_lengths.max(initial=0)) + 1
    return np.minimum.reduceat(distance * longest + reference_lengths, references.first) % longest


def _bleu(sums: Floats, order: int, brevity_penalty: bool) -> Floats:
    """BLEU of one order from summed statistics of shape `(..., 10)`."""
    most = len(ORDERS)
    matches, guesses = sums[..., :order], sums[..., most : most + order]
    precision = np.prod((matches + _TINY) / (guesses + _SMALL), axis=-1)
    value = precision ** (1 / order)
    if brevity_penalty:
        ratio = (sums[..., -2] + _TINY) / (sums[..., -1] + _SMALL)
        value = value * np.exp(np.minimum(0, 1 - 1 / ratio))
    return np.asarray(value)
