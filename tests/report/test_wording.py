"""What is said of explanations."""

from sightline.explain.methods import find_method, list_methods
from sightline.report.heatmaps import heatmap
from sightline.report.wording import summary


def test_every_method_has_a_name_and_a_sentence() -> None:
    methods = [find_method(name) for name in list_methods()]
    assert len({method.label for method in methods}) == len(methods)
    assert all(method.sentence.endswith(".") for method in methods)


def test_a_summary_says_what_colours_show(make_report) -> None:
    report = make_report()
    lrp, attention = (
        next(why for why in report.explanations if (why.method, why.word) == (method, "cat"))
        for method in ("lrp", "attention")
    )
    # Relevance: 2 at the left, -1 at the right, -0.5 of the words before.
    assert summary(lrp, heatmap(lrp, 60)) == (
        "LRP of “cat”: strongest for the word at the top left, against the word at the top right. "
        "Overall, 67 % of the relevance is in the picture, 33 % in the previous words."
    )
    said = summary(attention, heatmap(attention, 60))
    assert "against" not in said
    assert "words before" not in said
