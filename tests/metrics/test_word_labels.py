"""Words that are right by the references of a picture."""

import pytest

from sightline.metrics.word_labels import label_words


@pytest.mark.parametrize(
    ("word", "references", "right"),
    [
        ("dog", ["a dog"], True),
        ("dogs", ["a Dog."], True),
        ("running", ["it runs"], True),
        ("puppy", ["a beagle"], True),  # both name the category dog
        ("cat", ["a dog"], False),
        ("man", ["two men"], True),
        ("man", ["a woman", "a person"], False),
        ("person", ["a woman"], True),
        ("people", ["children play"], True),
        ("child", ["a girl"], True),
        ("girl", ["a child"], False),
        ("surfer", ["a skier"], False),  # both are people, and not the same
        ("red", ["a blue ball", "a red ball"], True),  # one reference is enough
        ("dog", ["a hot dog"], True),  # the word was said
        ("dog", ["hot-dogs"], False),
    ],
)
def test_labels(word, references, right):
    assert label_words([word], references) == [right]


def test_every_word_has_its_own_label():
    assert label_words(["red", "cat", "red"], ["a red dog"]) == [True, False, True]
    assert label_words([], ["a dog"]) == []
