import numpy as np

from sightline.metrics.spice.categories import CATEGORIES, category_scores

PICTURES = [{"all": 0.2, "object": 0.5}, {"all": 0.4, "object": 1.0, "colour": 0.25}, {"all": 0.6}]


def by_name():
    return {score.name: score for score in category_scores("S", PICTURES)}


def test_gives_the_whole_first_and_then_every_category():
    names = [score.name for score in category_scores("S", PICTURES)]
    assert names == ["S", *(f"S {category}" for category in CATEGORIES)]


def test_a_category_is_the_mean_over_the_pictures_that_have_it():
    scores = by_name()
    assert np.isclose(scores["S"].corpus, 0.4)
    assert scores["S object"].corpus == 0.75
    assert scores["S colour"].corpus == 0.25
    np.testing.assert_array_equal(scores["S colour"].per_image, [np.nan, 0.25, np.nan])
    assert np.isnan(scores["S size"].corpus)


def test_resampling_leaves_out_undefined_pictures_too():
    weights = np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    np.testing.assert_allclose(by_name()["S object"].resampled(weights), [0.75, 2 / 3, np.nan])
    np.testing.assert_allclose(by_name()["S"].resampled(weights), [0.4, 0.8 / 3, 0.6])
