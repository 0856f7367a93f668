"""Captions with one word made up: another of its kind that the picture's references do not say."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sightline.metrics.word_labels import label_words
from sightline.support.logistic import Floats
from sightline.text.stop_words import is_content
from sightline.text.tokenizer import tokenize
from sightline.text.word_kinds import kind

_TRIES = 20  # draws of a word that is wrong for the picture


@dataclass(frozen=True)
class Swap:
    """A caption with the word at `place`, of this kind, made up."""

    words: tuple[str, ...]
    place: int
    kind: str


class Swapper:
    """Draws words as often as captions say them, so that none is suspect for being rare.

    A new word ends as the old one does (`dogs` for `cats`, `running` for `sitting`), so that the
    grammar of the caption does not give it away.

    >>> swapper = Swapper(["a dog runs", "a cat sleeps", "a horse eats"])
    >>> [swap.kind for swap in swapper.swaps("A dog runs.", ["a dog runs"])]
    ['object', 'action']
    """

    def __init__(self, captions: Iterable[str]) -> None:
        counts = Counter(
            token for caption in captions for token in tokenize(caption) if is_content(token)
        )
        pools: dict[tuple[str, str], dict[str, int]] = {}
        for word, count in sorted(counts.items()):
            pools.setdefault(_form(word), {})[word] = count
        self._pools: dict[tuple[str, str], tuple[list[str], Floats]] = {
            form: (list(pool), np.array([*pool.values()]) / sum(pool.values()))
            for form, pool in pools.items()
        }

    def swaps(self, caption: str, references: Sequence[str], seed: int = 0) -> Iterator[Swap]:
        """The caption with one word of each kind that it has made up, as far as there are others.

        `references` are what people said of the picture, this caption included. The same seed
        draws the same words.
        """
        random = np.random.default_rng(seed)
        words = tokenize(caption)
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            if is_content(word):
                places.setdefault(kind(word), []).append(place)
        for name, of_kind in places.items():
            place = int(random.choice(of_kind))
            other = self._draw(words[place], references, random)
            if other is not None:
                yield Swap((*words[:place], other, *words[place + 1 :]), place, name)

    def _draw(
        self, word: str, references: Sequence[str], random: np.random.Generator
    ) -> str | None:
        """A word of the same form that no reference says, nor anything that amounts to it."""
        pool = self._pools.get(_form(word))
        if pool is None:
            return None
        for other in random.choice(pool[0], _TRIES, p=pool[1]).tolist():
            if not label_words([other], references)[0]:
                return str(other)
        return None


def _form(word: str) -> tuple[str, str]:
    if word.endswith("ing"):
        return kind(word), "ing"
    return kind(word), "s" if word.endswith("s") and not word.endswith(("ss", "us")) else ""
