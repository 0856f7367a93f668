"""The nearest known words of common unknown ones."""

import pytest

from sightline.errors import MissingExtraError
from sightline.text import neighbours
from sightline.text.nearest import nearest_word
from sightline.text.neighbours import unknown_neighbours

KNOWN = ("a", "dog", "dogs", "horse", "horn", "flower", "man")


@pytest.fixture(autouse=True)
def afresh():
    unknown_neighbours.cache_clear()
    yield
    unknown_neighbours.cache_clear()


def test_each_word_has_the_neighbour_that_it_has_by_itself() -> None:
    table = {
        word: near for near, words in unknown_neighbours(KNOWN).items() for word in words.split()
    }
    assert len(table) > 1000
    assert not set(table) & set(KNOWN)
    for word in ("trumpet", "wolf", "priest", *list(table)[::400]):
        near = nearest_word(word, KNOWN)
        assert near is not None
        assert (near.text, near.by != "spelling") == (table[word], True)


def test_a_table_stays_small() -> None:
    words = unknown_neighbours(KNOWN)
    assert sum(len(near) + len(others) + 6 for near, others in words.items()) <= 40_000


def test_it_is_made_once_for_a_vocabulary() -> None:
    assert unknown_neighbours(KNOWN) is unknown_neighbours(KNOWN)


def test_without_wordnet_there_is_none(monkeypatch) -> None:
    def missing() -> tuple[str, ...]:
        raise MissingExtraError("WordNet's synonyms", "spice")

    monkeypatch.setattr(neighbours, "things", missing)
    assert unknown_neighbours(KNOWN) == {}
