"""The nearest word that a captioner knows to one that it does not."""

import difflib
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
    known = [other for other in known if is_content(other)]
    for form in (other for other in known if stem(other) == stem(word)):
        return Neighbour(form, "form")
    try:
        meant = _nearest_meaning(word, known)
    except MissingExtraError:
        meant = None
    if meant is not None:
        return Neighbour(meant, "meaning")
    alike = difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE)
    return Neighbour(alike[0], "spelling") if alike else None


def _nearest_meaning(word: str, known: Sequence[str]) -> str | None:
    """Fewest steps between two meanings. Later senses are farther away: captions tell of things."""
    having: dict[str, list[tuple[int, int]]] = {}  # meaning -> ranks of its sense and of its word
    for rank, other in enumerate(known):
        for sense, meaning in enumerate(senses(other)):
            having.setdefault(meaning, []).append((sense, rank))
    distances = [
        (steps + sense + _LATER * other_sense, rank)
        for sense, start in enumerate(senses(_lemma(word)))
        for steps, ring in enumerate(_rings(start))
        for meaning in ring
        for other_sense, rank in having.get(meaning, ())
    ]
    return known[min(distances)[1]] if distances else None


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
