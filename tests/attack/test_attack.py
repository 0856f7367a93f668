"""A few seconds of the attack, and that its law is one that can be broken."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attack.law import Case, judge, snapshot
from attack.mutation import damage_json
from attack.pictures import picture_case
from attack.tampering import make_targets, saved_case, tampering_case
from sightline.errors import ConfigError

SAVED = Path(__file__).with_name("saved")  # files that once broke the law


def raises(error: BaseException):
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (raises(ValueError("x")), "ValueError"),
        (raises(ConfigError(" ")), "not one line"),
        (raises(SystemExit(0)), "SystemExit"),
        (lambda: os._exit(9), "ended with status"),
        (lambda: bytearray(1_600_000_000), "GB"),
    ],
    ids=["crash", "an empty line", "exit", "death", "memory"],
)
def test_the_law_can_be_broken(run, why):
    cases = [Case("good", int), Case("bad", run), Case("good", int)]
    (failure,) = judge(cases)
    assert why in failure.why


def test_an_endless_loop_is_seen(monkeypatch):
    monkeypatch.setattr("attack.law.SECONDS", 0.3)

    def loop() -> None:
        while True:
            time.time()

    (failure,) = judge([Case("loop", loop), Case("good", int)])
    assert failure.name == "loop"


def test_what_is_touched_is_seen(tmp_path):
    (tmp_path / "thesis.txt").touch()
    (failure,) = judge([Case("bad", (tmp_path / "thesis.txt").unlink)], tmp_path)
    assert "changed" in failure.why
    assert snapshot(tmp_path) == {}


def test_hostile_pictures_keep_the_law():
    assert judge([picture_case(seed) for seed in range(150)]) == []


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return make_targets(tmp_path_factory.mktemp("targets"))


def test_whole_files_are_read(targets):
    for target in targets.values():
        target.read() if target.file.name != "vgg11.pth" else None


def test_tampered_files_keep_the_law(targets):
    assert judge([tampering_case(targets, seed) for seed in range(400)]) == []


def test_files_that_once_broke_the_law_keep_it(targets):
    cases = [saved_case(targets, file) for file in sorted(SAVED.iterdir())]
    assert len(cases) >= 8
    assert judge(cases) == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_any_seed_keeps_the_law(targets, seed):
    assert judge([picture_case(seed), tampering_case(targets, seed)]) == []


def test_a_seed_makes_the_same_file_again():
    from random import Random

    content = b'{"a": [1, {"b": "c"}]}'
    assert damage_json(content, Random(3)) == damage_json(content, Random(3))
