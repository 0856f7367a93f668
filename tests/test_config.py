from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from sightline.config import Range, from_dict, nearest, to_dict
from sightline.errors import ConfigError, DataError


@dataclass(frozen=True)
class Inner:
    width: int = 4
    rate: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    kind: Literal["soft", "hard"] = "soft"
    limit: int | None = None
    shuffled: bool = True
    betas: tuple[float, ...] = (0.9, 0.98)
    inner: Inner = field(default_factory=Inner)
    options: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


def test_values_of_every_kind_arrive():
    values = {
        "name": "run",
        "kind": "hard",
        "limit": 3,
        "shuffled": False,
        "betas": [0, 1.5],
        "inner": {"width": 8},
        "options": {"anything": [1, {"at": None}]},
        "weights": {"nll": 1},
    }
    assert from_dict(Outer, values, "recipe") == Outer(
        "run",
        "hard",
        3,
        False,
        (0.0, 1.5),
        Inner(width=8),
        {"anything": [1, {"at": None}]},
        {"nll": 1.0},
    )


def test_defaults_fill_what_is_not_said():
    assert from_dict(Outer, {"name": "run"}, "recipe") == Outer("run")


def test_whole_numbers_become_floats():
    rate = from_dict(Inner, {"rate": 2}, "inner").rate
    assert type(rate) is float
    assert rate == 2.0


@dataclass(frozen=True)
class Bounded:
    width: Annotated[int, Range(1, 8)] = 1
    name: Annotated[str, Range(1, 3)] = "a"
    id: int | str = 0
    pair: tuple[float, float] = (0.0, 1.0)
    words: Annotated[list[str], Range(0, 2)] = field(default_factory=list)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 0}, "b.width: must be at least 1, not 0"),
        ({"width": 9}, "b.width: must be at most 8, not 9"),
        ({"width": 10**5000}, "b.width: must be a whole number that is not too large"),
        ({"name": ""}, "b.name: must have from 1 to 3 letters, not 0"),
        ({"name": "abcd"}, "b.name: must have from 1 to 3 letters, not 4"),
        ({"id": None}, "b.id: must be a whole number, not None"),
        ({"pair": [0.0]}, "b.pair: must be a list of 2, not of 1"),
        ({"pair": [0.0, float("nan")]}, "b.pair[1]: must be a number that is not too large"),
        ({"pair": [0.0, float("inf")]}, "b.pair[1]: must be a number that is not too large"),
        ({"words": ["a", "b", "c"]}, "b.words: must have from 0 to 2 entries, not 3"),
    ],
)
def test_ranges_and_lengths(values, message):
    with pytest.raises(DataError) as error:
        from_dict(Bounded, values, "b", error=DataError)
    assert str(error.value).startswith(message)
    assert len(str(error.value)) < 200


def test_a_union_takes_each_of_its_kinds():
    assert from_dict(Bounded, {"id": "x"}, "b").id == "x"
    assert from_dict(Bounded, {"id": 7}, "b").id == 7


def test_other_peoples_keys_may_be_left_out():
    assert from_dict(Bounded, {"width": 2, "licence": 3}, "b", strict=False) == Bounded(2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "x", "limti": 3}, "recipe: no key is called 'limti'; did you mean 'limit'?"),
        (
            {"name": "x", "inner": {"zzz": 3}},
            "recipe.inner: no key is called 'zzz'; known are: width, rate",
        ),
        ({"name": "x", "inner": 3}, "recipe.inner: must be a group of keys, not 3"),
        (
            {"name": "x", "inner": {"width": 0.5}},
            "recipe.inner.width: must be a whole number, not 0.5",
        ),
        (
            {"name": "x", "inner": {"width": True}},
            "recipe.inner.width: must be a whole number, not True",
        ),
        (
            {"name": "x", "inner": {"rate": True}},
            "recipe.inner.rate: must be a number, not True",
        ),
        (
            {"name": "x", "inner": {"rate": "fast"}},
            "recipe.inner.rate: must be a number, not 'fast'",
        ),
        ({"name": "x", "inner": {"rate": None}}, "recipe.inner.rate: must be a number, not None"),
        ({"name": 7}, "recipe.name: must be text, not 7"),
        ({"name": "x", "shuffled": 1}, "recipe.shuffled: must be true or false, not 1"),
        ({"name": "x", "kind": "warm"}, "recipe.kind: must be one of soft, hard, not 'warm'"),
        ({"name": "x", "limit": "3"}, "recipe.limit: must be a whole number, not '3'"),
        ({"name": "x", "betas": 0.9}, "recipe.betas: must be a list, not 0.9"),
        ({"name": "x", "betas": [0.9, None]}, "recipe.betas[1]: must be a number, not None"),
        ({"name": "x", "options": []}, "recipe.options: must be a group of keys, not []"),
        ({"name": "x", "weights": {"a": []}}, "recipe.weights.a: must be a number, not []"),
        ({}, "recipe: 'name' is missing"),
        ([], "recipe: must be a group of keys, not []"),
    ],
)
def test_an_error_names_the_key_and_what_it_must_be(values, message):
    with pytest.raises(ConfigError) as error:
        from_dict(Outer, values, "recipe")
    assert str(error.value) == message


def test_what_may_be_left_out_may_be_null():
    assert from_dict(Outer, {"name": "x", "limit": None}, "recipe").limit is None


def test_to_dict_is_plain_and_from_dict_takes_it_back():
    config = Outer("run", "hard", 3, False, (0.1,), Inner(8, 0.25), {"deep": [1]}, {"nll": 2.0})
    plain = to_dict(config)
    assert plain["betas"] == [0.1]
    assert plain["inner"] == {"width": 8, "rate": 0.25}
    assert from_dict(Outer, plain, "recipe") == config


def test_nearest_lists_what_is_known_when_nothing_is_near():
    assert nearest("beem", ["beam", "groups"]) == "did you mean 'beam'?"
    assert nearest("x", ["beam", "groups"]) == "known are: beam, groups"
