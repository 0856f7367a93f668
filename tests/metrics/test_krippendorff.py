"""Krippendorff's α against the worked examples of Krippendorff (2011) and counts by hand."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.metrics.bootstrap import interval
from sightline.metrics.krippendorff import krippendorff_alpha

_FOUR = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


@pytest.mark.parametrize(
    ("raters", "published"),
    [
        (("0100000010", "1110010000"), 0.095),  # section A: binary, two observers
        (("aabbdcccedda", "babbbcccedd" + "d"), 0.692),  # section B: nominal, two observers
        (_FOUR, 0.743),  # section C: nominal, any number of observers, missing data
    ],
)
def test_published_examples(raters, published):
    assert krippendorff_alpha(list(zip(*raters, strict=True))).corpus == pytest.approx(
        published, abs=5e-4
    )


def by_hand(units):
    """The definition, pair by pair: no counts, no matrix."""
    rated = [[v for v in unit if v is not None] for unit in units]
    rated = [unit for unit in rated if len(unit) > 1]
    observed = sum(
        sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in rated
    )
    everything = [v for unit in rated for v in unit]
    pairs = list(itertools.permutations(everything, 2))
    expected = sum(a != b for a, b in pairs)
    if not expected:
        return math.nan
    return 1 - (observed / len(everything)) / (expected / len(pairs))


@given(
    st.lists(
        st.lists(st.sampled_from(["win", "tie", "loss", None]), min_size=3, max_size=3), max_size=8
    )
)
def test_it_is_the_definition(units):
    assert krippendorff_alpha(units).corpus == pytest.approx(by_hand(units), nan_ok=True)


def test_agreement_and_chance():
    assert krippendorff_alpha([["a", "a"], ["b", "b"]]).corpus == 1
    assert math.isnan(krippendorff_alpha([["a", "a"], ["a", "a"]]).corpus)
    assert math.isnan(krippendorff_alpha([]).corpus)
    opposed = krippendorff_alpha([["a", "b"], ["b", "a"]] * 20).corpus
    assert opposed == pytest.approx(-1, abs=0.05)


def test_its_interval_covers_it_and_narrows():
    units = list(zip(*_FOUR, strict=True))
    few, many = (interval(krippendorff_alpha(units * times)) for times in (1, 20))
    assert few[0] < few[1]
    assert many[0] < krippendorff_alpha(units * 20).corpus < many[1]
    assert many[1] - many[0] < (few[1] - few[0]) / 2
