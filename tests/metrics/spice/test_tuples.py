import itertools

import pytest

from sightline.metrics.spice.scene_graph import SceneGraph
from sightline.metrics.spice.tuples import tuple_f_scores


def graph(objects=(), attributes=(), relations=()):
    return SceneGraph(frozenset(objects), frozenset(attributes), frozenset(relations))


def test_f_score_of_tuples_counted_by_hand():
    said = graph(["dog", "ball"], [("dog", "brown")], [("dog", "with", "ball")])
    meant = graph(["dog", "man"], [("dog", "brown"), ("dog", "big")], [("dog", "near", "man")])
    scores = tuple_f_scores(said, [meant])
    assert scores["all"] == pytest.approx(2 * 2 / (4 + 5))
    assert scores["object"] == pytest.approx(2 * 1 / 4)
    assert scores["attribute"] == pytest.approx(2 * 1 / 3)
    assert scores["relation"] == 0.0


def test_references_are_merged():
    meant = [graph(["dog"]), graph(["dog", "ball"]), graph(["ball"], [("ball", "red")])]
    assert tuple_f_scores(graph(["dog"]), meant)["all"] == pytest.approx(2 * 1 / (1 + 3))
    everything = graph(["dog", "ball"], [("ball", "red")])
    assert tuple_f_scores(everything, meant)["all"] == 1.0


def test_synonyms_match_in_every_place_of_a_tuple():
    said = graph(["kid", "bike"], [("kid", "little")], [("kid", "ride", "bike")])
    meant = graph(["child", "bicycle"], [("child", "small")], [("child", "ride", "bicycle")])
    assert tuple_f_scores(said, [meant])["all"] == 1.0


def test_synonymous_reference_words_are_one_object():
    meant = [graph(["sofa"]), graph(["couch"]), graph(["dog"])]
    assert tuple_f_scores(graph(["sofa", "dog"]), meant)["all"] == 1.0


def test_a_tuple_matches_only_as_a_whole():
    said = graph(["dog", "cat"], [("cat", "brown")])
    meant = graph(["dog", "cat"], [("dog", "brown")])
    assert tuple_f_scores(said, [meant])["attribute"] == 0.0


def test_the_order_of_references_does_not_matter():
    meant = [
        graph(["couch", "man"], [("man", "big")]),
        graph(["sofa", "guy"], [("guy", "large")]),
        graph(["lounge", "person"], [("person", "great")]),
    ]
    said = graph(["sofa", "person"], [("person", "large")])
    values = {
        tuple(sorted(tuple_f_scores(said, order).items()))
        for order in itertools.permutations(meant)
    }
    assert len(values) == 1


def test_attributes_are_told_apart():
    said = graph(["dog"], [("dog", "red"), ("dog", "2"), ("dog", "big"), ("dog", "wet")])
    meant = graph(["dog"], [("dog", "red"), ("dog", "two"), ("dog", "small")])
    scores = tuple_f_scores(said, [meant])
    assert scores["colour"] == 1.0
    assert scores["count"] == 1.0
    assert scores["size"] == 0.0
    assert scores["attribute"] == pytest.approx(2 * 2 / 7)


def test_a_category_nobody_speaks_of_is_left_out():
    assert tuple_f_scores(graph(["dog"]), [graph(["dog"])]).keys() == {"all", "object"}
    assert "size" in tuple_f_scores(graph(["dog"]), [graph(["dog"], [("dog", "big")])])


def test_empty_captions_score_nothing():
    assert tuple_f_scores(graph(), [graph(["dog"])])["all"] == 0.0
    assert tuple_f_scores(graph(["dog"]), [graph()])["all"] == 0.0
    assert tuple_f_scores(graph(), [graph()]) == {"all": 0.0}
