import math

import pytest

from sightline.errors import DataError
from sightline.metrics import diversity, document_frequencies, self_cider


def test_distinct_n_grams_and_vocabulary():
    result = diversity(["a dog runs", "A dog runs.", "a cat"])
    assert result.distinct == pytest.approx((4 / 8, 3 / 5, 1 / 2, 0))
    assert result.vocabulary == 4
    assert result.mean_length == pytest.approx(8 / 3)


def test_bad_endings_are_those_a_sentence_cannot_have():
    captions = ["a man on a", "a dog with the", "two men run", "a shop sign.", ""]
    assert diversity(captions).bad_endings == pytest.approx(2 / 5)


def test_novel_captions_are_not_in_training_whatever_their_punctuation():
    captions = ["A dog runs .", "a dog sleeps"]
    assert diversity(captions, ["a dog runs"]).novel == 0.5
    assert diversity(captions).novel is None


def test_nothing_to_measure_is_refused():
    with pytest.raises(DataError, match="no captions"):
        diversity([])


def test_self_cider_runs_from_same_to_nothing_shared():
    frequencies = document_frequencies([["a dog"], ["a man runs fast"], ["two cats sit here"]])
    same = ["two cats sit here"] * 3
    different = ["a man runs fast", "two cats sit here", "some red ball flew"]
    partly = ["two cats sit here", "two cats sit there", "two cats sit here"]
    score = self_cider([same, different, partly], frequencies)
    assert score.name == "self-CIDEr"
    assert score.per_image[0] == pytest.approx(0, abs=1e-6)
    assert score.per_image[1] == pytest.approx(1, abs=0.05)
    assert 0.05 < score.per_image[2] < 0.9
    assert score.corpus == pytest.approx(score.per_image.mean())


def test_self_cider_equals_its_definition():
    # Two of two words agree in one, all words equally rare: cosines 1/2 for words, 0 for bigrams,
    # and there is nothing longer. So similarities are 1/8 beside 1/2, eigenvalues 1/2 -+ 1/8.
    frequencies = document_frequencies([["x y", "x z"], ["a b"]])
    (value,) = self_cider([["x y", "x z"]], frequencies).per_image
    large, small = math.sqrt(5 / 8), math.sqrt(3 / 8)
    assert value == pytest.approx(-math.log2(large / (large + small)))


def test_self_cider_does_not_depend_on_the_order():
    captions = ["a man runs fast", "a man sits", "two cats sit here"]
    one = self_cider([captions, ["a b", "c d"]])
    other = self_cider([captions[::-1], ["c d", "a b"]])
    assert one.per_image == pytest.approx(other.per_image, abs=1e-9)


@pytest.mark.parametrize("captions", [[], [["a dog"]], [["a", "b"], ["a"]]])
def test_self_cider_needs_two_captions(captions):
    with pytest.raises(DataError, match="two captions"):
        self_cider(captions)


def test_self_cider_of_one_picture_needs_a_corpus():
    with pytest.raises(DataError, match="document frequencies"):
        self_cider([["a dog", "a cat"]])
