"""How varied captions are, whatever they describe: no references needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sightline.errors import DataError
from sightline.metrics.corpus import document_frequencies
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.ngrams import Captions
from sightline.metrics.score import Floats, Score
from sightline.text.tokenizer import tokenize

# Words after which an English caption cannot stop; training on CIDEr-D without an end token makes
# captions that do.
BAD_ENDINGS = frozenset(
    {"a", "an", "the", "this", "that", "his", "her", "its", "their", "and", "or", "of", "in", "on"}
    | {"at", "to", "for", "from", "with", "by", "into", "is", "are", "while", "as"}
)


@dataclass(frozen=True)
class Diversity:
    """Variety of one caption per picture.

    `distinct[n - 1]` is the number of different n-grams over the number of n-grams (Li et al.
    2016); `vocabulary` counts the words used at least once; `bad_endings` and `novel` are shares of
    the captions. `novel` is None unless training captions were given.
    """

    distinct: tuple[float, ...]
    vocabulary: int
    mean_length: float
    bad_endings: float
    novel: float | None


def diversity(captions: Sequence[str], training: Iterable[str] | None = None) -> Diversity:
    """Measure the variety of a system's captions; `training` tells which of them are copies.

    >>> measured = diversity(["a dog runs", "a dog sits on a"], training=["A dog runs."])
    >>> measured.vocabulary, measured.bad_endings, measured.novel
    (5, 0.5, 0.5)
    """
    tokens = [tuple(tokenize(caption)) for caption in captions]
    if not tokens:
        raise DataError("there are no captions to measure the diversity of")
    distinct = []
    for order in (1, 2, 3, 4):
        grams = [t[i : i + order] for t in tokens for i in range(len(t) - order + 1)]
        distinct.append(len(set(grams)) / max(1, len(grams)))
    novel = None
    if training is not None:
        known = {tuple(tokenize(caption)) for caption in training}
        novel = sum(caption not in known for caption in tokens) / len(tokens)
    return Diversity(
        distinct=tuple(distinct),
        vocabulary=len({word for caption in tokens for word in caption}),
        mean_length=sum(map(len, tokens)) / len(tokens),
        bad_endings=sum(bool(t) and t[-1] in BAD_ENDINGS for t in tokens) / len(tokens),
        novel=novel,
    )


def self_cider(
    captions: Sequence[Sequence[str]], frequencies: DocumentFrequencies | None = None
) -> Score:
    """Self-CIDEr (Wang and Chan 2019): how different several captions of one picture are.

    With s the square roots of the eigenvalues of the captions' CIDEr similarities, the diversity of
    m captions is -log_m(max s / sum s): 0 if they are all the same, 1 if they share nothing.
    Document frequencies are those of the captions themselves, or of a saved corpus.

    >>> self_cider([["a dog", "a dog"], ["a cat sits here", "two men run by"]]).per_image.tolist()
    [0.0, 1.0]
    """
    if not captions or min(map(len, captions)) < 2:
        raise DataError("self-CIDEr needs at least two captions of every picture")
    if frequencies is None and len(captions) < 2:
        raise DataError("self-CIDEr of one picture needs the document frequencies of a corpus")
    frequencies = frequencies or document_frequencies(captions)
    ids = {word: number for number, word in enumerate(frequencies.words)}
    values = []
    for texts in captions:
        words = [[ids.setdefault(word, len(ids)) for word in tokenize(text)] for text in texts]
        values.append(_spread(_similarities(Captions.of(words), frequencies)))
    per_image = np.array(values)
    return Score("self-CIDEr", float(per_image.mean()), per_image)


def _similarities(captions: Captions, frequencies: DocumentFrequencies) -> Floats:
    """Cosine of the tf-idf vectors of every two captions, averaged over the orders."""
    many = len(captions.lengths)
    total = np.zeros((many, many))
    for counts, documents in zip(
        frequencies.numbering.count(captions), frequencies.counts, strict=True
    ):
        grams, column = np.unique(counts.gram, return_inverse=True)
        known = grams < len(documents)
        seen = np.ones(len(grams))
        seen[known] = np.maximum(1, documents[grams[known]])
        vectors = np.zeros((many, len(grams)))
        idf = np.log(frequencies.images) - np.log(seen)
        vectors[counts.caption, column] = counts.count * idf[column]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(norms > 0, norms, 1)
        total += vectors @ vectors.T
    return total / len(frequencies.counts)


def _spread(similarities: Floats) -> float:
    roots = np.sqrt(np.maximum(0, np.linalg.eigvalsh(similarities)))
    share = roots.max() / roots.sum() if roots.sum() > 0 else 1.0
    return float(np.log(1 / share) / np.log(len(similarities)))
