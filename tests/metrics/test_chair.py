import numpy as np
import pytest

from sightline.errors import DataError
from sightline.metrics.chair import Chair, chair, objects_named

CANDIDATES = [
    "a dog and a cat on a bench",
    "a man on a bike",
    "green grass",
    "a dog eats a hot dog",
]
REFERENCES = [["a puppy"], ["someone rides a motorcycle"], ["a field"], ["a dog", "a dog eating"]]


def test_counts_by_hand():
    instances, sentences = chair(CANDIDATES, REFERENCES)
    # cat and bench; nothing; nothing is named; the hot dog
    np.testing.assert_allclose(instances.per_image, [2 / 3, 0, 0, 1 / 2])
    np.testing.assert_array_equal(sentences.per_image, [1, 0, 0, 1])
    assert instances.corpus == pytest.approx(3 / 7)
    assert sentences.corpus == 0.5
    assert (instances.name, sentences.name) == ("CHAIRi", "CHAIRs")


def test_annotations_and_references_together_say_what_is_there():
    annotated = [["cat"], [], [], ["hot dog", "person"]]
    instances, sentences = chair(CANDIDATES, REFERENCES, annotated=annotated)
    np.testing.assert_allclose(instances.per_image, [1 / 3, 0, 0, 0])
    assert sentences.corpus == 0.25


def test_lists_the_words_of_each_picture():
    pictures = objects_named(CANDIDATES, REFERENCES)
    assert pictures[0].mentioned == ("dog", "cat", "bench")
    assert [picture.hallucinated for picture in pictures] == [
        ("cat", "bench"),
        (),
        (),
        ("hot dog",),
    ]


def test_a_word_for_several_things_is_right_if_one_of_them_is_there():
    for category in ("bicycle", "motorcycle"):
        assert (
            objects_named(["a bike"], [["a scene"]], annotated=[[category]])[0].hallucinated == ()
        )
    assert objects_named(["a bike"], [["a scene"]], annotated=[["car"]])[0].hallucinated == (
        "bike",
    )


def test_every_mention_counts():
    assert chair(["a cat and a cat and a dog"], [["a dog"]])[0].corpus == pytest.approx(2 / 3)


def test_resampling_divides_sums():
    instances, _ = chair(CANDIDATES, REFERENCES)
    weights = np.array([[1.0, 1, 1, 1], [0, 2, 0, 2], [0, 0, 4, 0]])
    np.testing.assert_allclose(instances.resampled(weights), [3 / 7, 2 / 8, 0])


def test_says_what_is_wrong_with_annotations():
    with pytest.raises(DataError, match="picture 1 is annotated with 'puppy'"):
        chair(["a", "b"], [["a"], ["b"]], annotated=[["dog"], ["puppy"]])
    with pytest.raises(DataError, match="annotations of 1 pictures for 2"):
        chair(["a", "b"], [["a"], ["b"]], annotated=[["dog"]])
    with pytest.raises(DataError, match="no reference"):
        chair(["a"], [[]])


def test_batches_add_up():
    metric = Chair().add(CANDIDATES[:1], REFERENCES[:1]).add(CANDIDATES[1:], REFERENCES[1:])
    for part, score in zip(metric.scores(), chair(CANDIDATES, REFERENCES), strict=True):
        assert part.corpus == score.corpus
    assert metric.pictures == objects_named(CANDIDATES, REFERENCES)
    with pytest.raises(DataError, match="nothing to score"):
        Chair().scores()
