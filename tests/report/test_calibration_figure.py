"""The figure of a check's calibration shows what its bins say."""

import numpy as np
import pytest

from sightline.report.calibration_figure import draw_calibrations
from sightline.support.calibration import calibrate


def test_each_panel_has_its_points_intervals_and_shares_of_words() -> None:
    support = np.repeat([0.15, 0.85], [30, 10])
    right = np.arange(40) % 3 == 0
    bins = calibrate(support, right, np.arange(40))
    figure = draw_calibrations([("dev", bins), ("test", bins[:1]), ("nothing", [])])
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["dev", "test", "nothing"]
    line, points = panels[0].lines[:2]
    assert line.get_xydata().tolist() == [[0, 0], [1, 1]]
    np.testing.assert_allclose(points.get_xydata(), [[0.15, 10 / 30], [0.85, 4 / 10]])
    (intervals,) = panels[0].collections
    for each, segment in zip(bins, intervals.get_segments(), strict=True):
        assert segment[:, 1].tolist() == pytest.approx([*each["interval"].values()])
    assert [column.get_height() for column in panels[0].patches] == [0.75, 0.25]
    assert draw_calibrations([]).axes
