import pytest

from sightline.errors import MissingExtraError
from sightline.text import wordnet
from sightline.text.wordnet import pycocoevalcap_folder, synsets


def test_synonyms_share_a_set_and_other_words_do_not():
    assert synsets("bike") & synsets("bicycle")
    assert synsets("two") & synsets("2")
    assert not synsets("dog") & synsets("cat")


def test_entries_of_several_words_are_written_with_spaces():
    assert synsets("hot dog") & synsets("frankfurter")


def test_an_unknown_word_is_in_no_set():
    assert synsets("qwertyish") == frozenset()


def test_says_which_extra_is_missing(monkeypatch):
    monkeypatch.setattr(wordnet, "pycocoevalcap_folder", lambda: None)
    wordnet._entries.cache_clear()
    with pytest.raises(MissingExtraError, match=r"sightline\[spice\]"):
        synsets("dog")
    wordnet._entries.cache_clear()


def test_finds_the_wheel_without_importing_it():
    folder = pycocoevalcap_folder()
    assert folder is not None
    assert (folder / "meteor" / "meteor-1.5.jar").is_file()


def test_no_wheel_is_no_folder(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert pycocoevalcap_folder() is None
