from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from sightline.config import from_dict, nearest, to_dict
from sightline.errors import ConfigError


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


def test_whole_numbers_and_the_text_of_a_number_become_floats():
    for given, meant in ((2, 2.0), ("5e-4", 5e-4)):
        rate = from_dict(Inner, {"rate": given}, "inner").rate
        assert type(rate) is float
        assert rate == meant


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
