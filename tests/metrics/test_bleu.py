import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu as ReferenceBleu

from sightline.errors import DataError
from sightline.metrics import Bleu, bleu

captions = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=7).map(" ".join)
pictures = st.lists(
    st.tuples(captions, st.lists(captions, min_size=1, max_size=4)), min_size=1, max_size=6
)


def test_equals_the_reference(caption_set, reference_value):
    candidates, references = caption_set
    corpus, per_image = reference_value(ReferenceBleu(4), candidates, references, verbose=0)
    scores = bleu(candidates, references, tokenizer=str.split)
    assert [score.name for score in scores] == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]
    np.testing.assert_allclose([s.corpus for s in scores], corpus, rtol=0, atol=1e-9)
    np.testing.assert_allclose([s.per_image for s in scores], per_image, rtol=0, atol=1e-9)


def test_captions_are_tokenized():
    assert bleu(["A dog, running."], [["a dog running"]])[0].corpus == pytest.approx(1)


def test_brevity_penalty_can_be_left_out():
    candidates, references = ["a b c"], [["a b c d e f"]]
    assert bleu(candidates, references)[0].corpus == pytest.approx(np.exp(-1))
    without = bleu(candidates, references, brevity_penalty=False)[0]
    assert without.corpus == pytest.approx(1)
    assert without.per_image == pytest.approx([1])
    assert without.name == "BLEU-1 (no BP)"


def test_batches_equal_the_whole(caption_set):
    candidates, references = caption_set
    metric = Bleu(tokenizer=str.split)
    for number in range(len(candidates)):
        metric.add(candidates[number : number + 1], references[number : number + 1])
        metric.scores()  # asking early must not freeze anything
    whole = bleu(candidates, references, tokenizer=str.split)
    for score, expected in zip(metric.scores(), whole, strict=True):
        assert score.corpus == expected.corpus
        assert score.per_image.tolist() == expected.per_image.tolist()


@settings(max_examples=40)
@given(pictures, st.randoms())
def test_order_of_pictures_and_references_does_not_matter(chosen, random):
    candidates, references = zip(*chosen, strict=True)
    order = list(range(len(chosen)))
    random.shuffle(order)
    shuffled = [random.sample(references[i], len(references[i])) for i in order]
    before = bleu(candidates, references)
    after = bleu([candidates[i] for i in order], shuffled)
    for old, new in zip(before, after, strict=True):
        assert new.corpus == pytest.approx(old.corpus, abs=1e-12)
        assert new.per_image == pytest.approx(old.per_image[order], abs=1e-12)


@settings(max_examples=40)
@given(pictures)
def test_a_caption_equal_to_its_references_is_a_maximum(chosen):
    candidates, _ = zip(*chosen, strict=True)
    equal = bleu(candidates, [[caption, caption] for caption in candidates])
    other = bleu(candidates, [captions for _, captions in chosen])
    for best, score in zip(equal, other, strict=True):
        assert (best.per_image >= score.per_image - 1e-8).all()  # the reference adds 1e-9


@settings(max_examples=40)
@given(pictures)
def test_another_picture_leaves_per_image_values_alone(chosen):
    candidates, references = zip(*chosen, strict=True)
    before = bleu(candidates, references)
    after = bleu([*candidates, "z y x"], [*references, ["q r s"]])
    for old, new in zip(before, after, strict=True):
        assert new.per_image[:-1].tolist() == old.per_image.tolist()


def test_resampling_counts_gives_the_bleu_of_the_resampled_corpus():
    candidates = ["a b c d e", "a a b", "the dog runs on grass"]
    references = [["a b c d", "a b"], ["a b b"], ["the dog is running on grass"]]
    drawn = [0, 2, 2]
    weights = np.bincount(drawn, minlength=3).astype(float)
    expected = bleu([candidates[i] for i in drawn], [references[i] for i in drawn])
    for score, redrawn in zip(bleu(candidates, references), expected, strict=True):
        assert float(score.resampled(weights)) == pytest.approx(redrawn.corpus, abs=1e-12)


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        (["a", "b"], [["a"]], "2 candidates but references for 1 pictures"),
        (["a"], [[]], "picture 0 has no reference"),
        (["a"], ["a dog"], "the references of picture 0 are one string"),
        ([], [], "nothing to score"),
    ],
)
def test_wrong_shapes_are_refused(candidates, references, message):
    with pytest.raises(DataError, match=message):
        bleu(candidates, references)
