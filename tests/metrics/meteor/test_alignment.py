"""The aligner's choices, each checked against the rule it follows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.metrics.meteor.alignment import align
from sightline.metrics.meteor.matching import EXACT, PARAPHRASE, STEM, SYNONYM, Match


def one(start, other, matcher=EXACT):
    return Match(start, 1, other, 1, matcher)


def test_without_matches_nothing_is_aligned():
    assert align([], 0) == []
    assert align([[], []], 3) == []


def test_unambiguous_matches_are_all_taken():
    matches = [[one(0, 2)], [], [Match(2, 2, 0, 1, PARAPHRASE)], []]
    assert align(matches, 3) == [one(0, 2), Match(2, 2, 0, 1, PARAPHRASE)]


def test_a_word_is_used_once():
    # The later one: while both are compared, its chunk is still open and not yet counted.
    assert align([[one(0, 0)], [one(1, 0)]], 1) == [one(1, 0)]


def test_an_exact_match_beats_a_stem():
    assert align([[one(0, 0), one(0, 1, STEM)]], 2) == [one(0, 0)]
    assert align([[one(0, 1, STEM), one(0, 0)]], 2) == [one(0, 0)]


def test_more_words_beat_fewer_chunks():
    # "b a" in order leaves a word out; all three words make three chunks.
    matches = [[one(0, 2), one(0, 0)], [one(1, 1)], [one(2, 0)]]
    assert align(matches, 3) == [one(0, 2), one(1, 1), one(2, 0)]


def test_fewer_chunks_beat_less_distance():
    # The second "a" continues the chunk, the first is nearer.
    matches = [[one(0, 0), one(0, 4)], [one(1, 5)]]
    assert align(matches, 6) == [one(0, 4), one(1, 5)]


def test_inexact_words_count_half_and_are_rounded_down():
    # A stem counts nothing, so leaving its word free for the other costs no words; but the phrase
    # of two words against two counts two.
    phrase = Match(0, 2, 0, 2, PARAPHRASE)
    assert align([[one(0, 0, STEM), phrase], [one(1, 1, STEM)]], 2) == [phrase]
    # Exact words of the same length count four.
    assert align([[phrase, one(0, 0)], [one(1, 1)]], 2) == [one(0, 0), one(1, 1)]


def test_distance_goes_to_what_grows_later_from_the_same_path():
    # Both choices give one chunk. By the plain rule the nearer second match would win; METEOR
    # charges the first match's distance to the second, and takes the first.
    far, near = one(0, 3), one(0, 1)
    assert align([[far, near]], 4) == [far]


def test_of_equal_paths_the_earlier_wins():
    first, second = Match(0, 2, 0, 2, SYNONYM), Match(0, 2, 0, 2, PARAPHRASE)
    assert align([[first, second], []], 2) == [first]
    assert align([[second, first], []], 2) == [second]


def test_an_ambiguous_inexact_word_is_taken_only_where_it_adds_no_chunk():
    # It counts no word, so alone it loses to leaving the word out; beside a match it is free.
    either = [one(1, 1, STEM), one(1, 1, PARAPHRASE)]
    assert align([[], either], 2) == []
    assert align([[one(0, 0)], either], 2) == [one(0, 0), one(1, 1, STEM)]


@pytest.mark.parametrize(("width", "chosen"), [(39, PARAPHRASE), (40, EXACT)])
def test_the_beam_holds_forty_paths(width, chosen):
    # Each word of the candidate may be taken first; the path that leaves all of them to the long
    # phrase, which would count most, stands behind those paths.
    crowd = [one(0, place) for place in range(width)]
    matches = [crowd, [Match(1, 1, 0, width, PARAPHRASE)]]
    assert [match.matcher for match in align(matches, width)] == [chosen]


def words_of(alignment):
    return sum(m.length + m.other_length for m in alignment)


def chunks_of(alignment):
    ends = [(m.start + m.length, m.other + m.other_length) for m in alignment]
    starts = [(m.start, m.other) for m in alignment]
    return sum(end != start for end, start in zip([(-1, -1), *ends], starts, strict=False))


def disjoint(alignment):
    reference_words = [i for m in alignment for i in range(m.start, m.start + m.length)]
    candidate_words = [j for m in alignment for j in range(m.other, m.other + m.other_length)]
    return len(reference_words) == len(set(reference_words)) and len(candidate_words) == len(
        set(candidate_words)
    )


@st.composite
def few_matches(draw):
    length, other_length = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    matches = [[] for _ in range(length)]
    for _ in range(draw(st.integers(0, 5))):
        start, other = draw(st.integers(0, length - 1)), draw(st.integers(0, other_length - 1))
        matches[start].append(
            Match(
                start,
                draw(st.integers(1, length - start)),
                other,
                draw(st.integers(1, other_length - other)),
                EXACT,
            )
        )
    return matches, other_length


@given(few_matches())
def test_of_few_exact_matches_the_most_words_in_the_fewest_chunks_are_chosen(case):
    matches, other_length = case
    chosen = align(matches, other_length)
    assert chosen == sorted(chosen)
    assert disjoint(chosen)
    everything = [match for options in matches for match in options]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(everything, size) for size in range(len(everything) + 1)
    )
    best = min((-words_of(s), chunks_of(sorted(s))) for s in subsets if disjoint(s))
    assert (-words_of(chosen), chunks_of(chosen)) == best
