"""N-grams as numbers: captions as flat arrays of word ids, and how often each n-gram is in each.

The reference scorers count tuples of words in dictionaries, one caption at a time. Here an n-gram
is the pair (number of its first n - 1 words, its last word), packed into one integer and numbered
in turn, so that counting a whole corpus is one sort per order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ORDERS = (1, 2, 3, 4)
_WORD_BITS = 31  # a packed n-gram is (prefix << 31) | word


@dataclass(frozen=True, eq=False)
class Captions:
    """Any number of captions as one array of word ids and the length of each caption.

    >>> Captions.of([[4, 5], [], [5]]).lengths
    array([2, 0, 1])
    """

    ids: Ints
    lengths: Ints

    @classmethod
    def of(cls, captions: Sequence[Sequence[int]]) -> "Captions":
        lengths = np.fromiter(map(len, captions), np.int64, len(captions))
        flat = (word for caption in captions for word in caption)
        return cls(np.fromiter(flat, np.int64, int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Sequence["Captions"]) -> "Captions":
        if not parts:
            return cls.of([])
        ids = np.concatenate([part.ids for part in parts])
        return cls(ids, np.concatenate([part.lengths for part in parts]))

    @cached_property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def owners(self) -> Ints:
        """The caption each word is in."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


@dataclass(frozen=True, eq=False)
class Counts:
    """The distinct n-grams of one order in each caption, sorted by caption, then by n-gram."""

    caption: Ints
    gram: Ints
    count: Ints

    @classmethod
    def of(cls, caption: Ints, gram: Ints) -> "Counts":
        size = int(gram.max(initial=0)) + 1
        pairs, count = np.unique(caption * size + gram, return_counts=True)
        return cls(pairs // size, pairs % size, count)


class Numbering:
    """A number for each n-gram seen, of each order; it grows as captions are added.

    >>> numbering = Numbering()
    >>> [counts.gram.tolist() for counts in numbering.count(Captions.of([[7, 8, 7, 8]]), grow=True)]
    [[7, 8], [0, 1], [0, 1], [0]]
    """

    def __init__(self) -> None:
        self.sizes = [0 for _ in ORDERS]
        self._keys = [np.empty(0, np.int64) for _ in ORDERS]  # sorted; an n-gram packed
        self._numbers = [np.empty(0, np.int64) for _ in ORDERS]  # of each key

    def count(self, captions: Captions, grow: bool = False) -> list[Counts]:
        """Count the n-grams of each order in each caption.

        N-grams never seen get numbers from `sizes` upwards: for good if the numbering may grow,
        else for this call only.
        """
        ids, owners = captions.ids, captions.owners
        remaining = np.repeat(captions.starts + captions.lengths, captions.lengths)
        remaining -= np.arange(len(ids))
        at, grams = np.arange(len(ids)), ids
        if grow:
            self.sizes[0] = max(self.sizes[0], int(ids.max(initial=-1)) + 1)
        counts = [Counts.of(owners, grams)]
        for order in ORDERS[1:]:
            whole = remaining[at] >= order
            at = at[whole]
            grams = self._number(order, grams[whole] << _WORD_BITS | ids[at + order - 1], grow)
            counts.append(Counts.of(owners[at], grams))
        return counts

    def copy(self) -> "Numbering":
        return Numbering.of_packed(self.sizes[0], [self.packed(order) for order in ORDERS[1:]])

    def packed(self, order: int) -> Ints:
        """The n-grams of an order above 1 by number, each as (prefix << 31) | word."""
        result = np.empty(self.sizes[order - 1], np.int64)
        result[self._numbers[order - 1]] = self._keys[order - 1]
        return result

    @classmethod
    def of_packed(cls, words: int, packed: Sequence[Ints]) -> "Numbering":
        """The numbering of so many words and of the given n-grams of orders 2, 3 and 4."""
        numbering = cls()
        numbering.sizes = [words, *map(len, packed)]
        numbering._numbers = [np.empty(0, np.int64), *map(np.argsort, packed)]
        numbering._keys = [np.empty(0, np.int64), *map(np.sort, packed)]
        return numbering

    def _number(self, order: int, keys: Ints, grow: bool) -> Ints:
        known, numbers = self._keys[order - 1], self._numbers[order - 1]
        place, numbered = find(known, keys)
        result = np.empty(len(keys), np.int64)
        result[numbered] = numbers[place[numbered]]
        new, inverse = np.unique(keys[~numbered], return_inverse=True)
        fresh = self.sizes[order - 1] + np.arange(len(new))
        result[~numbered] = fresh[inverse]
        if grow:
            slots = np.searchsorted(known, new)
            self._keys[order - 1] = np.insert(known, slots, new)
            self._numbers[order - 1] = np.insert(numbers, slots, fresh)
            self.sizes[order - 1] += len(new)
        return result


def find(sorted_keys: Ints, queries: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each query is among the keys, and whether it is there at all."""
    if not len(sorted_keys):
        return np.zeros(len(queries), np.int64), np.zeros(len(queries), np.bool_)
    place = np.minimum(np.searchsorted(sorted_keys, queries), len(sorted_keys) - 1)
    return place, sorted_keys[place] == queries
