"""Relevance at the size it is shown."""

import dataclasses

import numpy as np
import pytest

from sightline.explanation import Explanation
from sightline.report.heatmaps import Heatmap, heatmap


def explain(relevance: np.ndarray) -> Explanation:
    box = ((0.0, 0.0, 1.0, 1.0),)
    return Explanation(
        *("lrp", "cat", 0, 1.0, np.float32([1]), box, ("<start>",), np.float32([0])),
        heatmap=relevance.astype(np.float32),
    )


def test_its_sign_and_its_shape_stay_and_its_scale_is_symmetric() -> None:
    relevance = np.zeros((40, 80))
    relevance[:20, :40], relevance[20:, 40:] = 3.0, -1.5
    shown = heatmap(explain(relevance), 8)
    assert shown.values.shape == (4, 8)
    assert (shown.values[:2, :4] == 1).all()
    assert (shown.values[2:, 4:] == -0.5).all()
    assert shown.values[:2, 4:].sum() == shown.values[2:, :4].sum() == 0


def test_scales_do_not_depend_on_the_size_of_pictures() -> None:
    small, large = np.zeros((20, 20)), np.zeros((60, 60))
    small[:10], large[:30] = 1 / 200, 1 / 1800  # one in all
    assert heatmap(explain(small), 10).scale == pytest.approx(heatmap(explain(large), 10).scale)
    assert heatmap(explain(small), 10).scale == pytest.approx(2.0)
    assert heatmap(explain(10 * small), 10).scale == pytest.approx(20.0)


def test_a_pixel_that_stands_out_does_not_leave_the_rest_pale() -> None:
    relevance = np.full((50, 50), 1.0)
    relevance[0, 0] = 1000.0
    shown = heatmap(explain(relevance), 50)
    assert (shown.values == 1).all()
    # … but where there is nothing else, it is what is shown.
    relevance[:] = 0
    relevance[0, 0] = 2.0
    shown = heatmap(explain(relevance), 50)
    assert shown.values[0, 0] == 1
    assert shown.values.sum() == 1


def test_nothing_stays_nothing_and_regions_do_without_pixels() -> None:
    assert not heatmap(explain(np.zeros((5, 5))), 5).values.any()
    alone = dataclasses.replace(
        explain(np.zeros((2, 2))),
        regions=np.float32([1, -0.5]),
        boxes=((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)),
        heatmap=None,
    )
    assert heatmap(alone, 4).values[0].tolist() == [1, 1, -0.5, -0.5]


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [(0, 0, "at the top left"), (4, 5, "in the middle"), (8, 8, "at the bottom right")],
)
def test_where_it_is_strongest(row: int, column: int, says: str) -> None:
    values = np.full((9, 9), -0.1, np.float32)
    values[row, column] = 1
    assert Heatmap(values, 1.0).strongest(1) == says
    assert Heatmap(-values, 1.0).strongest(-1) == says
    assert Heatmap(np.abs(values), 1.0).strongest(-1) is None
    assert Heatmap(np.ones((1, 1), np.float32), 1.0).strongest(1) == "at the top left"
