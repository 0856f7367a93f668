"""Which words and phrases match, in METEOR's order."""

import pytest

from sightline.metrics.meteor.data import Caption, Phrase, Word
from sightline.metrics.meteor.matching import EXACT, PARAPHRASE, STEM, SYNONYM, Candidate, Match

STEMS = {"dogs": "dog", "dog": "dog", "doggy": "dog"}
SYNSETS = {"dog": {1}, "dogs": {1}, "hound": {1, 2}, "car": {3}, "auto": {3}}
NODES = {"dog": 1, "a lot": 2, "many": 3, "hound": 4, "lots": 5}
TARGETS = {2: [3, 5], 3: [2], 5: [3, 2], 1: [4, 3]}  # node -> nodes, in the order of the table


class Table:
    def in_table_order(self, node, targets):
        return [target for target in TARGETS[node] if target in targets]


def caption(text):
    words = text.split()
    phrases = [
        Phrase(start, length, NODES[" ".join(words[start : start + length])])
        for start in range(len(words))
        for length in (1, 2)
        if " ".join(words[start : start + length]) in NODES and start + length <= len(words)
    ]
    return Caption(
        [Word(w, 0, STEMS.get(w, w), frozenset(SYNSETS.get(w, ())), False) for w in words],
        phrases,
        frozenset(phrase.node for phrase in phrases),
        [(p, frozenset(TARGETS[p.node])) for p in phrases if p.node in TARGETS],
    )


def match(candidate, reference):
    return Candidate(caption(candidate), Table()).match(caption(reference))


def test_equal_words_match_exactly():
    assert match("the red car", "car red") == [
        [Match(0, 1, 2, 1, EXACT)],
        [Match(1, 1, 1, 1, EXACT)],
    ]


def test_exact_then_stem_then_synonym():
    assert match("hound dogs doggy dog", "dog the") == [
        [
            Match(0, 1, 3, 1, EXACT),
            Match(0, 1, 1, 1, STEM),
            Match(0, 1, 2, 1, STEM),
            Match(0, 1, 0, 1, SYNONYM),
            Match(0, 1, 1, 1, SYNONYM),
            Match(0, 1, 0, 1, PARAPHRASE),
        ],
        [],
    ]


def test_an_equal_word_is_no_synonym_of_itself():
    assert match("auto auto", "auto car") == [
        [Match(0, 1, 0, 1, EXACT), Match(0, 1, 1, 1, EXACT)],
        [Match(1, 1, 0, 1, SYNONYM), Match(1, 1, 1, 1, SYNONYM)],
    ]


def test_identical_captions_match_exactly_only():
    assert match("dog dogs", "dog dogs") == [[Match(0, 1, 0, 1, EXACT)], [Match(1, 1, 1, 1, EXACT)]]
    assert any(m.matcher == STEM for m in match("dog dogs x", "dog dogs")[0])


def test_paraphrases_listed_both_ways_match_twice():
    assert match("many x", "a lot") == [
        [Match(0, 2, 0, 1, PARAPHRASE), Match(0, 2, 0, 1, PARAPHRASE)],
        [],
    ]


@pytest.mark.parametrize(("candidate", "reference"), [("hound", "dog x"), ("dog", "hound x")])
def test_paraphrases_listed_one_way_match_once(candidate, reference):
    assert match(candidate, reference)[0].count(Match(0, 1, 0, 1, PARAPHRASE)) == 1


def test_paraphrases_are_in_the_order_of_the_table_then_of_the_words():
    matches = match("many x many y lots", "a lot")[0]
    forward, backward = matches[:3], matches[3:]
    assert [m.other for m in forward] == [0, 2, 4]  # "many" is listed before "lots"
    assert [m.other for m in backward] == [0, 2, 4]
    matches = match("a lot many", "lots")[0]
    assert [(m.other, m.other_length) for m in matches[:2]] == [(2, 1), (0, 2)]
