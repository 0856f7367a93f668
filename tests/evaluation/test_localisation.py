"""Measures of heatmaps against boxes, on relevance made by hand."""

import numpy as np
import pytest

from sightline.evaluation.localisation import correctness, lean, overlap, pointed, share_inside

LEFT = np.array([[True, True, False, False]])


def test_only_positive_relevance_counts_inside_and_outside():
    relevance = np.array([[3.0, -9.0, 1.0, -5.0]])
    assert correctness(relevance, LEFT)[0] == share_inside(relevance, LEFT) == 0.75
    assert correctness(-relevance, LEFT)[0] == pytest.approx(9 / 14)
    nowhere = np.array([[-1.0, 0.0, 0.0, -1.0]])
    assert correctness(nowhere, LEFT)[0] == share_inside(nowhere, LEFT) == 0


def test_a_threshold_leaves_out_what_is_below_that_share_of_the_largest():
    relevance, mask = np.array([[10.0, 4.5, 2.0, 0.5]]), np.array([[True, False, True, False]])
    expected = [12 / 17, 12 / 16.5, 12 / 16.5, 10 / 14.5, 10 / 14.5, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(correctness(relevance, mask), expected)


def test_many_pixels_may_be_the_most_relevant():
    assert pointed(np.array([[3.0, 1.0, 3.0, 3.0]]), LEFT) == pytest.approx(1 / 3)
    assert pointed(np.array([[-3.0, -1.0, -3.0, -3.0]]), LEFT) == 1


def test_a_large_box_has_no_advantage():
    small, large = np.array([[True, False, False, False]]), np.array([[False, True, True, True]])
    assert lean(np.ones((1, 4)), small, large) == 0.5
    assert lean(np.array([[2.0, 1.0, 1.0, 1.0]]), small, large) == pytest.approx(2 / 3)
    assert lean(-np.ones((1, 4)), small, large) == 0.5  # nothing for either
    assert lean(np.array([[2.0, 0.0, 0.0, 0.0]]), small, large) == 1


def test_overlap():
    assert overlap(LEFT, LEFT) == 1
    assert overlap(LEFT, ~LEFT) == 0
