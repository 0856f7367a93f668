import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider as ReferenceCiderD

from sightline.metrics import Cider, CiderD, cider, cider_d, document_frequencies

captions = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=7).map(" ".join)
pictures = st.lists(
    st.tuples(captions, st.lists(captions, min_size=1, max_size=4)), min_size=2, max_size=6
)


def plain_cider(candidates, references, corpus):
    """CIDEr by its definition (eq. 1 to 3), one dictionary per caption."""

    def grams(caption, order):
        words = caption.split()
        return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))

    values = []
    for candidate, texts in zip(candidates, references, strict=True):
        total = 0.0
        for order in (1, 2, 3, 4):
            documents = Counter()
            for document in corpus:
                documents.update({gram for text in document for gram in grams(text, order)})

            def vector(text, order=order, documents=documents):
                return {
                    gram: count * (math.log(len(corpus)) - math.log(max(1, documents[gram])))
                    for gram, count in grams(text, order).items()
                }

            weights = vector(candidate)
            for text in texts:
                other = vector(text)
                product = sum(weight * other.get(gram, 0) for gram, weight in weights.items())
                scale = math.hypot(*weights.values()) * math.hypot(*other.values())
                total += product / scale if scale else 0
        values.append(10 * total / 4 / len(texts))
    return values


def test_robust_form_equals_the_reference(caption_set, reference_value):
    candidates, references = caption_set
    corpus, per_image = reference_value(ReferenceCiderD(), candidates, references)
    score = cider_d(candidates, references, tokenizer=str.split)
    assert score.name == "CIDEr-D"
    assert score.corpus == pytest.approx(corpus, abs=1e-9)
    np.testing.assert_allclose(score.per_image, per_image, rtol=0, atol=1e-9)


def test_plain_form_equals_its_definition(caption_set):
    candidates, references = caption_set
    candidates, references = candidates[:12], references[:12]
    score = cider(candidates, references, tokenizer=str.split)
    assert score.name == "CIDEr"
    expected = plain_cider(candidates, references, references)
    np.testing.assert_allclose(score.per_image, expected, rtol=0, atol=1e-9)
    assert score.corpus == pytest.approx(np.mean(expected), abs=1e-9)


def test_saved_frequencies_weigh_every_n_gram():
    corpus = [["a dog runs", "a dog"], ["a cat sits on grass", "the cat"], ["a man and a dog"]]
    candidates = ["a dog sits on a red mat", "the cat runs"]
    references = [["a dog sits on grass", "a red dog"], ["the cat runs fast", "a cat on a red mat"]]
    frequencies = document_frequencies(corpus)
    score = cider(candidates, references, frequencies)
    expected = plain_cider(candidates, references, corpus)
    np.testing.assert_allclose(score.per_image, expected, rtol=0, atol=1e-9)
    assert score.per_image.tolist() != cider(candidates, references).per_image.tolist()


def test_using_saved_frequencies_leaves_them_alone():
    frequencies = document_frequencies([["a dog runs"], ["a cat"]])
    sizes = list(frequencies.numbering.sizes)
    first = cider(["a red dog"], [["a big red dog"]], frequencies)
    assert frequencies.numbering.sizes == sizes
    assert cider(["a red dog"], [["a big red dog"]], frequencies).corpus == first.corpus


def test_frequencies_of_the_references_change_nothing(caption_set):
    candidates, references = caption_set
    frequencies = document_frequencies(references, str.split)
    given_score = cider_d(candidates, references, frequencies, str.split)
    own_score = cider_d(candidates, references, tokenizer=str.split)
    assert given_score.per_image == pytest.approx(own_score.per_image, abs=1e-12)


@pytest.mark.parametrize("metric", [Cider, CiderD])
def test_batches_equal_the_whole(metric, caption_set):
    candidates, references = caption_set
    batched = metric(tokenizer=str.split)
    for number in range(len(candidates)):
        batched.add(candidates[number : number + 1], references[number : number + 1])
        batched.score()
    whole = metric(tokenizer=str.split).add(candidates, references).score()
    assert batched.score().per_image == pytest.approx(whole.per_image, abs=1e-12)


@settings(max_examples=40)
@given(pictures, st.randoms())
def test_order_of_pictures_and_references_does_not_matter(chosen, random):
    candidates, references = zip(*chosen, strict=True)
    order = list(range(len(chosen)))
    random.shuffle(order)
    shuffled = [random.sample(references[i], len(references[i])) for i in order]
    for metric in (cider, cider_d):
        before = metric(candidates, references)
        after = metric([candidates[i] for i in order], shuffled)
        assert after.corpus == pytest.approx(before.corpus, abs=1e-9)
        assert after.per_image == pytest.approx(before.per_image[order], abs=1e-9)


@settings(max_examples=40)
@given(pictures)
def test_a_caption_equal_to_its_references_is_a_maximum(chosen):
    candidates, references = zip(*chosen, strict=True)
    frequencies = document_frequencies([*references, *([text] for text in candidates)])
    equal = [[caption, caption] for caption in candidates]
    for metric in (cider, cider_d):
        best = metric(candidates, equal, frequencies).per_image
        assert (best >= metric(candidates, references, frequencies).per_image - 1e-9).all()


@settings(max_examples=40)
@given(pictures)
def test_with_saved_frequencies_another_picture_moves_no_other(chosen):
    candidates, references = zip(*chosen, strict=True)
    frequencies = document_frequencies(references)
    before = cider_d(candidates, references, frequencies).per_image
    after = cider_d([*candidates, "z y x"], [*references, ["q r s a"]], frequencies).per_image
    assert after[:-1] == pytest.approx(before, abs=1e-12)
    assert after[-1] == 0


def test_a_picture_more_makes_shared_words_rarer():
    # Without saved frequencies another picture must move the rest: idf counts pictures.
    before = cider_d(["a b", "a c"], [["a b"], ["a c d"]]).per_image
    after = cider_d(["a b", "a c", "z"], [["a b"], ["a c d"], ["q"]]).per_image
    assert after[1] > before[1]
