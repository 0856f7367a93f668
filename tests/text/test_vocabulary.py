"""The words a captioner knows."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.data.dataset import CaptionedImage, build_vocabulary
from sightline.data.stats import coverage
from sightline.errors import DataError
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import END, PAD, START, UNKNOWN, Vocabulary


def image(*captions: str, split: str | None = "train") -> CaptionedImage:
    return CaptionedImage("a.jpg", Path("a.jpg"), captions, split)


SAID = [image("A dog.", "the dog runs"), image("a dog", "A cat, a hen")]  # a 4, dog 3, rest 1


def test_ids_go_by_count_then_alphabet():
    words = build_vocabulary(SAID).to_json()
    assert words == ["a", "dog", "cat", "hen", "runs", "the"]
    assert build_vocabulary(SAID[::-1]).to_json() == words


def test_special_words_come_first():
    vocabulary = build_vocabulary(SAID)
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)
    assert vocabulary.words[:4] == ("<pad>", "<start>", "<end>", "<unknown>")
    assert vocabulary.id("a") == 4
    assert len(vocabulary) == 4 + 6


def test_minimum_count_and_size():
    assert build_vocabulary(SAID, min_count=3).to_json() == ["a", "dog"]
    assert build_vocabulary(SAID, min_count=4).to_json() == ["a"]
    assert build_vocabulary(SAID, size=3).to_json() == ["a", "dog", "cat"]
    assert build_vocabulary(SAID, min_count=2, size=3).to_json() == ["a", "dog"]
    with pytest.raises(DataError, match="no word occurs 5 times"):
        build_vocabulary(SAID, min_count=5)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_only_of_training_pictures(split):
    with pytest.raises(DataError, match=f"split '{split}'; build .* training split only"):
        build_vocabulary([*SAID, image("x", split=split)])
    assert "x" in build_vocabulary([image("x", split=None)])


def test_unknown_words():
    vocabulary = Vocabulary(["a", "dog"])
    assert vocabulary.encode("A purple dog!") == [4, UNKNOWN, 5]
    assert vocabulary.id("purple") == UNKNOWN
    assert vocabulary.decode([4, UNKNOWN, 5]) == "a <unknown> dog"


def test_decoding_stops_at_the_end_and_leaves_out_padding():
    vocabulary = Vocabulary(["a", "dog"])
    assert vocabulary.decode([START, 4, PAD, 5, END, 4, 4]) == "a dog"


def test_special_words_in_a_caption_are_unknown_words():
    vocabulary = build_vocabulary([image("a dog <end> of <pad>")])
    assert vocabulary.to_json() == ["a", "dog", "of"]
    assert vocabulary.encode("a <end> <pad> <start>") == [4, UNKNOWN, UNKNOWN, UNKNOWN]


text = st.text("aB é1.,!'-<>&(", max_size=15) | st.sampled_from(["can't", "<end>", "cannot"])


@settings(max_examples=50)
@given(st.lists(text, min_size=1, max_size=3))
def test_what_it_was_built_from_comes_back(captions):
    training = [image("something", *captions)]
    vocabulary = build_vocabulary(training)
    for caption in captions:
        tokens = tokenize(caption)
        if not any(token in vocabulary.words[:4] for token in tokens):
            assert vocabulary.decode(vocabulary.encode(caption)) == " ".join(tokens)


@given(st.sets(st.text(min_size=1).filter(lambda word: not word.startswith("<"))))
def test_json_round_trip(words):
    vocabulary = Vocabulary(sorted(words))
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary


@pytest.mark.parametrize("content", [None, {"a": 1}, ["a", 3]])
def test_json_of_something_else(content):
    with pytest.raises(DataError, match="must be a list of words"):
        Vocabulary.from_json(content)


@pytest.mark.parametrize("words", [["a", "b", "a"], ["<pad>"]])
def test_a_word_twice(words):
    with pytest.raises(DataError, match="appears twice"):
        Vocabulary(words)


def test_coverage_by_minimum_count():
    rows = coverage(SAID, (1, 2, 4, 5))
    assert rows == [(1, 6, 1.0), (2, 2, 7 / 11), (4, 1, 4 / 11), (5, 0, 0.0)]
