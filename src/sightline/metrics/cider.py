"""CIDEr and CIDEr-D (Vedantam et al. 2015): agreement with the references in tf-idf n-grams.

What the COCO evaluation calls "CIDEr" is CIDEr-D: counts clipped to the reference's, and a Gaussian
penalty on the difference in length.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from sightline.metrics.corpus import Corpus, Overlap, References, Tokenizer
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.ngrams import ORDERS, Counts, Ints
from sightline.metrics.score import Floats, Score
from sightline.text.tokenizer import tokenize

_SIGMA = 6.0
_SCALE = 10.0


class Consensus:
    """The references' side of CIDEr, computed once: their tf-idf vectors and lengths."""

    def __init__(self, references: References, frequencies: Sequence[Ints], images: int) -> None:
        self._idf = [np.log(images) - np.log(np.maximum(1, counts)) for counts in frequencies]
        self._unseen = float(np.log(images))
        self._weights = list(map(self._weigh, references.counts, self._idf))
        captions = len(references.captions.lengths)
        self._norms = list(
            map(_norms, references.counts, self._weights, [captions for _ in ORDERS])
        )
        self._bigrams = np.maximum(0, references.captions.lengths - 1)

    def _weigh(self, counts: Counts, idf: Floats) -> Floats:
        """Term frequency times log(images / document frequency) of each entry (eq. 1)."""
        seen = counts.gram < len(idf)
        rarity = np.full(len(seen), self._unseen)
        rarity[seen] = idf[counts.gram[seen]]
        return np.asarray(counts.count * rarity)

    def score(self, overlaps: Sequence[Overlap], lengths: Ints, robust: bool) -> Floats:
        """CIDEr (eq. 2 and 3) of each candidate, or CIDEr-D if `robust`.

        `lengths` are the candidates' in words.
        """
        candidate, reference = overlaps[0].candidate, overlaps[0].reference
        similarity = np.zeros(len(candidate))
        sides = zip(overlaps, self._idf, self._weights, self._norms, strict=True)
        for overlap, idf, weights, norms in sides:
            counts = overlap.candidate_counts
            candidate_weights = self._weigh(counts, idf)
            in_candidate = candidate_weights[overlap.candidate_entry]
            in_reference = weights[overlap.reference_entry]
            clipped = np.minimum(in_candidate, in_reference) if robust else in_candidate
            product = np.bincount(overlap.pair, clipped * in_reference, minlength=len(candidate))
            candidate_norms = _norms(counts, candidate_weights, len(lengths))
            scale = candidate_norms[candidate] * norms[reference]
            similarity += np.divide(product, scale, out=np.zeros(len(candidate)), where=scale > 0)
        if robust:
            # The reference tool's "length" is the number of bigrams: 0 for 0 and for 1 word.
            difference = np.maximum(0, lengths - 1)[candidate] - self._bigrams[reference]
            similarity *= np.exp(-(difference**2) / (2 * _SIGMA**2))
        total = np.bincount(candidate, similarity, minlength=len(lengths))
        pairs = np.bincount(candidate, minlength=len(lengths))
        return np.asarray(_SCALE / len(ORDERS) * total / pairs)


def _norms(counts: Counts, weights: Floats, captions: int) -> Floats:
    squares = np.bincount(counts.caption, weights * weights, minlength=captions)
    return np.asarray(np.sqrt(squares))


class Cider:
    """Plain CIDEr fed batch by batch: no clipping, no length penalty.

    Document frequencies are those of the references, or `frequencies` of a saved corpus.

    >>> metric = Cider()
    >>> _ = metric.add(["a dog runs"], [["a dog runs"]]).add(["a cat"], [["two cats sleep"]])
    >>> metric.score().per_image.round(3).tolist()
    [7.5, 0.0]
    """

    name = "CIDEr"
    robust = False

    def __init__(
        self, frequencies: DocumentFrequencies | None = None, tokenizer: Tokenizer = tokenize
    ) -> None:
        self.corpus = Corpus(tokenizer, frequencies)

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        self.corpus.add(candidates, references)
        return self

    def score(self) -> Score:
        return self.of(self.corpus)

    @classmethod
    def of(cls, corpus: Corpus) -> Score:
        """Score a corpus whose n-grams other metrics may share."""
        frequencies = corpus.frequencies
        consensus = Consensus(corpus.references, frequencies.counts, frequencies.images)
        per_image = consensus.score(corpus.overlap, corpus.candidates.lengths, cls.robust)
        return Score(cls.name, float(per_image.mean()), per_image)


class CiderD(Cider):
    """CIDEr-D fed batch by batch: the "CIDEr" of the COCO evaluation.

    >>> metric = CiderD()
    >>> _ = metric.add(["a dog runs"], [["a dog runs"]]).add(["a cat"], [["two cats sleep"]])
    >>> metric.score().per_image.round(3).tolist()
    [7.5, 0.0]
    """

    name = "CIDEr-D"
    robust = True


def cider(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    frequencies: DocumentFrequencies | None = None,
    tokenizer: Tokenizer = tokenize,
) -> Score:
    """Plain CIDEr of raw captions; a caption equal to its only reference gets 10.

    >>> captions = ["a dog runs on grass", "a cat sleeps on a sofa"]
    >>> round(cider(captions, [[caption] for caption in captions]).corpus, 9)
    10.0
    """
    return Cider(frequencies, tokenizer).add(candidates, references).score()


def cider_d(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    frequencies: DocumentFrequencies | None = None,
    tokenizer: Tokenizer = tokenize,
) -> Score:
    """CIDEr-D of raw captions, the number that papers report as CIDEr.

    >>> captions = ["a dog runs on grass", "a cat sleeps on a sofa"]
    >>> round(cider_d(captions, [[caption] for caption in captions]).corpus, 9)
    10.0
    """
    return CiderD(frequencies, tokenizer).add(candidates, references).score()
