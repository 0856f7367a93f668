"""Words and the boxes of what they name."""

from pathlib import Path

import numpy as np
import pytest

from sightline.data.dataset import CaptionedImage, Grounding
from sightline.data.scenes import make_scenes
from sightline.evaluation.grounding import grounded_words, inside

LEFT, RIGHT, TOP = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 0.5)


def picture(*groundings):
    return CaptionedImage("p.jpg", Path("p.jpg"), ("a dog", "two men"), groundings=groundings)


def test_the_noun_of_a_phrase_is_its_last_word():
    image = picture(Grounding("a brown dog", (LEFT,), 0, (0, 3)), Grounding("the sky", (TOP,)))
    assert grounded_words(["a", "brown", "dog", "a", "dog"], image) == {2: (LEFT,), 4: (LEFT,)}
    assert grounded_words(["a", "brown", "cat"], image) == {}
    assert grounded_words(["the", "sky"], image) == {1: (TOP,)}


def test_all_that_is_called_so_is_meant_each_box_once():
    image = picture(
        Grounding("a man", (LEFT,), 0, (0, 2)),
        Grounding("the other man", (RIGHT, TOP), 1, (0, 3)),
        Grounding("a man", (LEFT,), 1, (0, 2)),
        Grounding("two men", (TOP,), 1, (4, 6)),
    )
    assert grounded_words(["man"], image) == {0: (LEFT, TOP, RIGHT)}


def test_a_category_of_coco_answers_to_its_names():
    image = picture(Grounding("person", (LEFT,)), Grounding("hot dog", (RIGHT,)))
    words = ["a", "woman", "eats", "a", "hot", "dog", "by", "a", "dog", "and", "a", "person"]
    assert grounded_words(words, image) == {1: (LEFT,), 5: (RIGHT,), 11: (LEFT,)}


def test_every_object_word_of_a_scene_has_the_box_of_that_object():
    for scene in make_scenes(10, seed=5):
        for number, caption in enumerate(scene.captions):
            expected = {
                thing.span[1] - 1: thing.boxes
                for thing in scene.groundings
                if thing.caption == number and thing.span is not None
            }
            assert grounded_words(caption.split(), scene) == dict(sorted(expected.items()))


@pytest.mark.parametrize(
    ("boxes", "count"), [((LEFT,), 4), ((LEFT, TOP), 6), ((LEFT, LEFT), 4), ((), 0)]
)
def test_inside_is_the_union_of_boxes(boxes, count):
    mask = inside(boxes, 2, 4)
    assert mask.shape == (2, 4)
    assert mask.sum() == count


def test_a_pixel_is_inside_where_its_middle_is():
    np.testing.assert_array_equal(inside(((0.3, 0, 0.6, 1),), 1, 4), [[False, True, False, False]])
