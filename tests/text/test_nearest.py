"""The nearest known word."""

import pytest

from sightline.errors import MissingExtraError
from sightline.text import nearest
from sightline.text.nearest import Neighbour, nearest_word

KNOWN = ["a", "on", "man", "dog", "horse", "flower", "coffee", "hat", "running", "building", "mans"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("zebra", "horse"),
        ("zebras", "horse"),
        ("dahlia", "flower"),
        ("espresso", "coffee"),
        ("sombrero", "hat"),
        ("fox", "dog"),
    ],
)
def test_by_what_words_mean(word: str, near: str) -> None:
    assert nearest_word(word, KNOWN) == Neighbour(near, "meaning")


def test_another_form_of_a_word_comes_first() -> None:
    assert nearest_word("runs", KNOWN) == Neighbour("running", "form")


def test_by_spelling_where_no_meaning_is_known() -> None:
    assert nearest_word("buillding", KNOWN) == Neighbour("building", "spelling")
    assert nearest_word("qqq", KNOWN) is None
    assert nearest_word("onn", ["on"]) is None  # it names nothing


def test_it_does_without_wordnet(monkeypatch) -> None:
    def missing(word: str) -> tuple[str, ...]:
        raise MissingExtraError("WordNet's synonyms", "spice")

    monkeypatch.setattr(nearest, "senses", missing)
    assert nearest_word("horsse", KNOWN) == Neighbour("horse", "spelling")
    assert nearest_word("zebra", KNOWN) is None


def test_the_commoner_of_two_equally_near_words_is_taken() -> None:
    assert nearest_word("sombrero", ["bonnet", "fedora"]) == Neighbour("bonnet", "meaning")
    assert nearest_word("sombrero", ["fedora", "bonnet"]) == Neighbour("fedora", "meaning")
