"""METEOR's four matchers: every pair of words or phrases that may be aligned."""

from collections import defaultdict
from typing import NamedTuple

from sightline.metrics.meteor.data import Caption, MeteorData, Phrase, Word

# The matchers, in the order METEOR asks them.
EXACT, STEM, SYNONYM, PARAPHRASE = MATCHERS = range(4)


class Match(NamedTuple):
    """Reference words from `start` on that may be aligned to candidate words from `other` on."""

    start: int
    length: int
    other: int
    other_length: int
    matcher: int


class Candidate:
    """One candidate, to be matched against its references."""

    def __init__(self, caption: Caption, data: MeteorData) -> None:
        self.caption = caption
        self._data = data
        self._texts = [word.text for word in caption.words]
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(caption.words):
            self._by_text[word.text].append(place)
            self._by_stem[word.stem].append(place)
        self._synsets = frozenset[int]().union(*(word.synsets for word in caption.words))
        self._alike: dict[str, list[tuple[int, int]]] = {}

    def match(self, reference: Caption) -> list[list[Match]]:
        """The matches that begin at each word of the reference, in METEOR's order.

        A pair that two matchers find, or that the paraphrase table lists in both directions, is
        there twice: the beam of the search that follows holds both.
        """
        texts = [word.text for word in reference.words]
        if texts == self._texts:  # identical captions are matched word by word only
            return [
                [Match(start, 1, other, 1, EXACT) for other in self._by_text[text]]
                for start, text in enumerate(texts)
            ]
        matches = [
            [Match(start, 1, other, 1, matcher) for matcher, other in self._words_like(word)]
            for start, word in enumerate(reference.words)
        ]
        self._add_paraphrases(reference, matches)
        return matches

    def _words_like(self, word: Word) -> list[tuple[int, int]]:
        """Matcher and place of every word of the candidate that matches."""
        text, synsets = word.text, word.synsets
        alike = self._alike.get(text)
        if alike is None:
            alike = [(EXACT, place) for place in self._by_text.get(text, ())]
            alike += [
                (STEM, place)
                for place in self._by_stem.get(word.stem, ())
                if self._texts[place] != text
            ]
            if not synsets.isdisjoint(self._synsets):
                alike += [
                    (SYNONYM, place)
                    for place, other in enumerate(self.caption.words)
                    if other.text != text and not synsets.isdisjoint(other.synsets)
                ]
            self._alike[text] = alike
        return alike

    def _add_paraphrases(self, reference: Caption, matches: list[list[Match]]) -> None:
        for phrase, targets in reference.sources:
            if not targets.isdisjoint(self.caption.nodes):
                for other in self._paraphrases(phrase, targets, self.caption):
                    matches[phrase.start].append(_matched(phrase, other))
        for other, targets in self.caption.sources:
            if not targets.isdisjoint(reference.nodes):
                for phrase in self._paraphrases(other, targets, reference):
                    matches[phrase.start].append(_matched(phrase, other))

    def _paraphrases(
        self, phrase: Phrase, targets: frozenset[int], caption: Caption
    ) -> list[Phrase]:
        """Paraphrases of a phrase in a caption, in the order of the table, then of the words."""
        nodes = targets & caption.nodes
        ordered = self._data.in_table_order(phrase.node, nodes) if len(nodes) > 1 else nodes
        return [
            paraphrase
            for node in ordered
            for paraphrase in caption.phrases
            if paraphrase.node == node
        ]


def _matched(phrase: Phrase, other: Phrase) -> Match:
    return Match(phrase.start, phrase.length, other.start, other.length, PARAPHRASE)
