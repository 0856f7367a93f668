import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.rouge.rouge import Rouge

from sightline.metrics import RougeL, rouge_l

captions = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=9).map(" ".join)
pictures = st.lists(
    st.tuples(captions, st.lists(captions, min_size=1, max_size=4)), min_size=1, max_size=6
)


def test_equals_the_reference(caption_set, reference_value):
    candidates, references = caption_set
    corpus, per_image = reference_value(Rouge(), candidates, references)
    score = rouge_l(candidates, references, tokenizer=str.split)
    assert score.name == "ROUGE-L"
    assert score.corpus == pytest.approx(corpus, abs=1e-9)
    np.testing.assert_allclose(score.per_image, per_image, rtol=0, atol=1e-9)


@settings(max_examples=40)
@given(pictures, st.randoms())
def test_order_of_pictures_and_references_does_not_matter(chosen, random):
    candidates, references = zip(*chosen, strict=True)
    order = list(range(len(chosen)))
    random.shuffle(order)
    shuffled = [random.sample(references[i], len(references[i])) for i in order]
    after = rouge_l([candidates[i] for i in order], shuffled)
    assert after.per_image == pytest.approx(rouge_l(candidates, references).per_image[order])


@settings(max_examples=40)
@given(pictures)
def test_one_exactly_when_precision_and_recall_can_be(chosen):
    candidates, references = zip(*chosen, strict=True)
    assert (rouge_l(candidates, references).per_image <= 1 + 1e-12).all()
    equal = rouge_l(candidates, [[caption] for caption in candidates])
    assert equal.per_image == pytest.approx(np.ones(len(candidates)))


def test_captions_of_many_lengths_at_once():
    # Long and short pairs together, so that sorting and cutting into tables is exercised.
    words = [f"w{number}" for number in range(700)]
    candidates = [" ".join(words[:length]) for length in (1, 700, 3, 300)]
    references = [[" ".join(words[:length]), "w0"] for length in (2, 700, 6, 100)]
    precision = np.array([1, 1, 1, 1 / 3])
    recall = 1  # "w0" is within every candidate
    expected = 2.44 * precision * recall / (recall + 1.44 * precision)
    assert rouge_l(candidates, references).per_image == pytest.approx(expected)


def test_batches_equal_the_whole(caption_set):
    candidates, references = caption_set
    metric = RougeL(tokenizer=str.split)
    metric.add(candidates[:1], references[:1]).add(candidates[1:], references[1:])
    whole = rouge_l(candidates, references, tokenizer=str.split)
    assert metric.score().per_image.tolist() == whole.per_image.tolist()
