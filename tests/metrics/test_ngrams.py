from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.metrics.ngrams import ORDERS, Captions, Numbering

captions = st.lists(st.lists(st.integers(0, 6), max_size=9), min_size=1, max_size=6)


def by_hand(caption, order):
    return sorted(Counter(zip(*(caption[i:] for i in range(order)), strict=False)).values())


@settings(max_examples=60)
@given(captions, captions)
def test_counts_equal_counting_by_hand(first, second):
    numbering = Numbering()
    numbering.count(Captions.of(first), grow=True)
    for order, counts in zip(ORDERS, numbering.count(Captions.of(second)), strict=True):
        for number, caption in enumerate(second):
            mine = counts.count[counts.caption == number]
            assert sorted(mine.tolist()) == by_hand(caption, order)


@settings(max_examples=60)
@given(captions, captions)
def test_an_n_gram_keeps_its_number_as_the_numbering_grows(first, second):
    numbering = Numbering()
    before = numbering.count(Captions.of(first), grow=True)
    numbering.count(Captions.of(second), grow=True)
    after = numbering.count(Captions.of(first))
    copied = numbering.copy().count(Captions.of(first))
    for old, new, copy in zip(before, after, copied, strict=True):
        assert old.gram.tolist() == new.gram.tolist() == copy.gram.tolist()
        assert old.count.tolist() == new.count.tolist()


def test_unknown_n_grams_are_numbered_beyond_the_known_and_forgotten():
    numbering = Numbering()
    numbering.count(Captions.of([[1, 2, 3]]), grow=True)
    sizes = list(numbering.sizes)
    bigrams = numbering.count(Captions.of([[2, 3, 9, 2, 3, 9]]))[1]
    assert sorted(bigrams.gram.tolist()) == [1, 2, 3]
    assert sorted(bigrams.count.tolist()) == [1, 2, 2]
    assert numbering.sizes == sizes
