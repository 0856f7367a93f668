"""Candidates beside their references, and the n-grams they share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Self

import numpy as np

from sightline.errors import DataError
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.ngrams import Captions, Counts, Ints, Numbering, find
from sightline.text.tokenizer import tokenize

Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True, eq=False)
class Overlap:
    """The n-grams of one order that candidates share with the references of their picture.

    Pair p is candidate `candidate[p]` against reference `reference[p]`. Shared n-gram i is in pair
    `pair[i]`; it is entry `candidate_entry[i]` of the candidates' counts and
    `reference_entry[i]` of the references'.
    """

    candidate_counts: Counts
    reference_counts: Counts
    candidate: Ints
    reference: Ints
    pair: Ints
    candidate_entry: Ints
    reference_entry: Ints


class References:
    """The references of each picture, with their n-grams counted once.

    Reference i belongs to picture `images[i]`; those of a picture are consecutive, from `first` on.
    """

    def __init__(self, captions: Captions, per_image: Ints, numbering: Numbering) -> None:
        self.captions = captions
        self.per_image = per_image
        self.first = np.cumsum(per_image) - per_image
        self.images = np.repeat(np.arange(len(per_image)), per_image)
        self.numbering = numbering
        self.counts = numbering.count(captions, grow=True)
        edges = np.arange(len(captions.lengths) + 1)
        self._first_entry = [np.searchsorted(counts.caption, edges) for counts in self.counts]

    def document_frequencies(self) -> list[Ints]:
        """In the references of how many pictures each n-gram occurs; one array per order."""
        result = []
        for counts, size in zip(self.counts, self.numbering.sizes, strict=True):
            pairs = np.sort(self.images[counts.caption] * size + counts.gram)
            distinct = pairs[np.diff(pairs, prepend=-1) > 0]
            result.append(np.bincount(distinct % size if size else distinct, minlength=size))
        return result

    def overlap(self, candidates: Captions, image: Ints) -> list[Overlap]:
        """What candidate c shares with each reference of picture `image[c]`, for each order."""
        pairs = self.per_image[image]
        candidate = np.repeat(np.arange(len(image)), pairs)
        reference = _ranges(self.first[image], pairs)
        orders = zip(self.numbering.count(candidates), self.counts, self._first_entry, strict=True)
        overlaps = []
        for candidate_counts, reference_counts, first_entry in orders:
            start = first_entry[reference]
            entries = first_entry[reference + 1] - start
            reference_entry = _ranges(start, entries)
            pair = np.repeat(np.arange(len(reference)), entries)
            gram = reference_counts.gram[reference_entry]
            size = 1 + max(int(candidate_counts.gram.max(initial=0)), int(gram.max(initial=0)))
            candidate_keys = candidate_counts.caption * size + candidate_counts.gram
            candidate_entry, shared = find(candidate_keys, candidate[pair] * size + gram)
            overlaps.append(
                Overlap(
                    candidate_counts,
                    reference_counts,
                    candidate,
                    reference,
                    pair[shared],
                    candidate_entry[shared],
                    reference_entry[shared],
                )
            )
        return overlaps


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, ... of each range, one after another."""
    offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return offsets + np.arange(len(offsets))


class _Words:
    """Captions as they come in: each word gets the next free id."""

    def __init__(self, tokenizer: Tokenizer, words: Sequence[str] = ()) -> None:
        self.tokenizer = tokenizer
        self.ids: defaultdict[str, int] = defaultdict(count(len(words)).__next__)
        self.ids.update(zip(words, range(len(words)), strict=True))

    def read(self, captions: Iterable[str]) -> Captions:
        ids: list[int] = []
        lengths = []
        for caption in captions:
            tokens = self.tokenizer(caption)
            ids.extend(map(self.ids.__getitem__, tokens))
            lengths.append(len(tokens))
        return Captions(np.array(ids, np.int64), np.array(lengths, np.int64))


class Corpus:
    """Candidates and references, fed batch by batch, counted once for all metrics that ask.

    With `frequencies` CIDEr weighs n-grams by a saved corpus, else by these references.

    >>> corpus = Corpus().add(["A dog runs."], [["A dog is running.", "The dog runs."]])
    >>> corpus.candidates.lengths, corpus.references.captions.lengths
    (array([3]), array([4, 3]))
    """

    def __init__(
        self, tokenizer: Tokenizer = tokenize, frequencies: DocumentFrequencies | None = None
    ) -> None:
        self._saved = frequencies
        self._words = _Words(tokenizer, frequencies.words if frequencies else ())
        self._candidates: list[Captions] = []
        self._references: list[Captions] = []
        self._per_image: list[int] = []

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        """Take one candidate and one or more references for each of some more pictures."""
        check_shapes(candidates, references)
        for computed in ("candidates", "references", "overlap", "frequencies"):
            self.__dict__.pop(computed, None)
        self._candidates.append(self._words.read(candidates))
        self._references.append(self._words.read(c for captions in references for c in captions))
        self._per_image.extend(map(len, references))
        return self

    def __len__(self) -> int:
        return len(self._per_image)

    @cached_property
    def candidates(self) -> Captions:
        return Captions.joined(self._candidates)

    @cached_property
    def references(self) -> References:
        if not len(self):
            raise DataError("there is nothing to score: no candidate was given")
        numbering = self._saved.numbering.copy() if self._saved else Numbering()
        per_image = np.array(self._per_image, np.int64)
        return References(Captions.joined(self._references), per_image, numbering)

    @cached_property
    def overlap(self) -> list[Overlap]:
        return self.references.overlap(self.candidates, np.arange(len(self)))

    @cached_property
    def frequencies(self) -> DocumentFrequencies:
        """The saved document frequencies, or those of these references."""
        return self._saved or _frequencies(self.references, self._words)


def document_frequencies(
    references: Iterable[Sequence[str]], tokenizer: Tokenizer = tokenize
) -> DocumentFrequencies:
    """Count the n-grams of a corpus, given as the raw captions of each picture.

    >>> document_frequencies([["a dog", "the dog"], ["a cat"]]).counts[0].tolist()
    [2, 1, 1, 1]
    """
    words = _Words(tokenizer)
    captions = [words.read(captions) for captions in references]
    if not captions:
        raise DataError("there are no captions to take document frequencies from")
    per_image = np.array([len(image.lengths) for image in captions], np.int64)
    return _frequencies(References(Captions.joined(captions), per_image, Numbering()), words)


def _frequencies(references: References, words: _Words) -> DocumentFrequencies:
    counts = references.document_frequencies()
    # Words that only candidates have are numbered too; those after the references' last are cut.
    known = list(words.ids)[: len(counts[0])]
    return DocumentFrequencies(len(references.per_image), known, references.numbering, counts)


def check_shapes(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what no caption metric is defined on."""
    if len(candidates) != len(references):
        raise DataError(
            f"{len(candidates)} candidates but references for {len(references)} pictures: "
            "give one list of references per candidate"
        )
    for index, captions in enumerate(references):
        if isinstance(captions, str):
            raise DataError(
                f"the references of picture {index} are one string: give a list of captions"
            )
        if not len(captions):
            raise DataError(f"picture {index} has no reference: every picture needs at least one")
