"""The figure of words by methods."""

import dataclasses
import io

import numpy as np
from PIL import Image

from sightline.captions import UNFAMILIAR
from sightline.report import colours
from sightline.report.explanation_figure import draw_explanations


def drawn(figure) -> list[np.ndarray]:
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def test_rows_are_methods_and_columns_words(make_report) -> None:
    report = make_report()
    figure = draw_explanations(report)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["a\n40 %", "✓ cat\n40 %", "✗ sleeps\n40 %", "not: dog\n30 %"]
    labels = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert labels == ["LRP", "Attention"]
    assert figure.get_suptitle() == "a cat sleeps"
    pictures = drawn(figure)
    assert len(pictures) == 1 + 2 * 4
    assert (pictures[0] == np.asarray(report.picture)).all()
    red, green, blue = pictures[1][0, 0]  # LRP: for the word at the left
    assert red > green > blue
    red, green, blue = pictures[1][0, -1]  # against it at the right
    assert red < green < blue
    assert pictures[-1][0, -1, 0] > pictures[-1][0, -1, 2]  # attention is never against


def test_an_unfamiliar_picture_is_said_below_the_caption(make_report) -> None:
    figure = draw_explanations(make_report(unfamiliar=True))
    assert figure.get_suptitle() == f"a cat sleeps\n{UNFAMILIAR}"


def test_a_long_caption_goes_on_below(make_report) -> None:
    said = tuple(f"word{number}" for number in range(19))
    figure = draw_explanations(make_report(said=("a", "b", "c"), methods=("lrp",)))
    few = figure.get_size_inches()
    report = make_report(methods=("lrp",), said=said, checked=False)
    report = dataclasses.replace(
        report, explanations=tuple(why for why in report.explanations if why.place < 19)
    )
    figure = draw_explanations(report)
    titles = [axes.get_title().split("\n")[0] for axes in figure.axes if axes.get_title()]
    assert titles == [*said, "not: dog"]
    tops = [round(axes.get_position().y1, 3) for axes in figure.axes if axes.get_title()]
    assert [tops.count(top) for top in dict.fromkeys(tops)] == [7, 7, 6]
    assert figure.get_size_inches()[0] < 2 * few[0]
    assert figure.get_size_inches()[1] > 2 * few[1]
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=30)
    assert Image.open(buffer).width > 300


def test_only_what_was_asked_for_has_a_column(make_report) -> None:
    report = make_report()
    only = tuple(why for why in report.explanations if why.word == "cat")
    figure = draw_explanations(dataclasses.replace(report, explanations=only, counterfactuals=()))
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["✓ cat\n40 %"]


def test_colours_are_told_apart_in_grey_scale_and_by_the_colour_blind() -> None:
    """By their distance after simulated loss of one kind of cone (Viénot, Brettel, Mollon 1999)."""
    loss = {
        "red": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "green": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }
    colour_for, against = np.array(colours.FOR) / 255, np.array(colours.AGAINST) / 255
    for matrix in loss.values():
        seen = [np.array(matrix) @ colour**2.2 for colour in (colour_for, against)]
        assert np.abs(seen[0] - seen[1]).max() > 0.5
