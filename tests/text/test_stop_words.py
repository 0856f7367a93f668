"""What is a content word."""

from sightline.data.scene_drawing import COLOURS, SHAPES
from sightline.metrics.coco_objects import WORDS
from sightline.text.stop_words import STOP_WORDS, is_content
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import SPECIAL


def test_names_of_things_and_colours_are_content():
    names = {name for synonyms in WORDS.values() for name in synonyms if " " not in name}
    for name in (*names, *SHAPES, *COLOURS, "two", "running", "t-shirt"):
        assert is_content(name), name


def test_special_words_and_signs_are_not():
    for word in (*SPECIAL, "-", "&", "the", "of"):
        assert not is_content(word), word


def test_stop_words_are_tokens():
    assert all(tokenize(word) == [word] for word in STOP_WORDS - {"'s", "n't"})
