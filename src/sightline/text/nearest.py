"""The nearest word that a captioner knows to one that it does not."""

import difflib
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sightline.errors import MissingExtraError
from sightline.text.stemmer import stem
from sightline.text.stop_words import is_content
from sightline.text.wordnet import related, senses

_STEPS = 5  # between two meanings, along "is a kind of": from raccoon to dog there are four
_LATER = 0.5  # steps, for each sense of a known word that comes before
_ALIKE = 0.75  # of the letters
_PLURALS = (("ies", "y"), ("es", ""), ("s", ""))


class Neighbour(NamedTuple):
    """A known word, and in what it is near: "form", "meaning" or "spelling"."""

    text: str
    by: str


def nearest_word(word: str, known: Sequence[str]) -> Neighbour | None:
    """The nearest of the `known` words, commonest first, or None if none is near.

    Another form of the word comes first, then WordNet's closest meaning (where it is installed:
    the extra `spice`), then the most similar spelling.

    >>> known = ["a", "dog", "dogs", "horse", "guitar", "horn", "playing"]
    >>> nearest_word("trumpet", known)
    Neighbour(text='horn', by='meaning')
    >>> nearest_word("zebras", known).text, nearest_word("played", known)
    ('horse', Neighbour(text='playing', by='form'))
    >>> nearest_word("guittar", known), nearest_word("xyzzy", known)
    (Neighbour(text='guitar', by='spelling'), None)
    """
    known_words = KnownWords(known)
    near = known_words.like(word)
    if near is not None:
        return near
    alike = difflib.get_close_matches(word, known_words.words, n=1, cutoff=_ALIKE)
    return Neighbour(alike[0], "spelling") if alike else None


class KnownWords:
    """Words, commonest first, made ready for many questions."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = [word for word in words if is_content(word)]
        self._forms: dict[str, str] = {}  # by the stem
        for word in self.words:
            self._forms.setdefault(stem(word), word)

    def like(self, word: str) -> Neighbour | None:
        """The word nearest to another in form or meaning, if one is near."""
        form = self._forms.get(stem(word))
        if form is not None:
            return Neighbour(form, "form")
        try:
            meant = self._nearest_meaning(word)
        except MissingExtraError:
            meant = None
        return None if meant is None else Neighbour(meant, "meaning")

    @functools.cached_property
    def _meanings(self) -> dict[str, list[tuple[int, int]]]:
        """By a meaning: which sense it is of a word, and the word's rank."""
        meanings: dict[str, list[tuple[int, int]]] = {}
        for rank, word in enumerate(self.words):
            for sense, meaning in enumerate(senses(word)):
                meanings.setdefault(meaning, []).append((sense, rank))
        return meanings

    def _nearest_meaning(self, word: str) -> str | None:
        """Fewest steps between two meanings. Later senses are farther: captions tell of things."""
        best = (float("inf"), 0)
        for sense, start in enumerate(senses(_lemma(word))):
            for steps, ring in enumerate(_rings(start)):
                if steps + sense > best[0]:
                    break
                for meaning in ring:
                    for other_sense, rank in self._meanings.get(meaning, ()):
                        best = min(best, (steps + sense + _LATER * other_sense, rank))
        return None if best[0] == float("inf") else self.words[best[1]]


def _rings(sense: str) -> Iterator[set[str]]:
    """The meanings that are none, one, two … steps away."""
    ring = seen = {sense}
    for _ in range(_STEPS + 1):
        yield ring
        ring = {meaning for inner in ring for meaning in related(inner)} - seen
        seen = seen | ring


def _lemma(word: str) -> str:
    """A plural as WordNet has it."""
    singulars = (word.removesuffix(end) + new for end, new in _PLURALS if word.endswith(end))
    return next((form for form in (word, *singulars) if senses(form)), word)
