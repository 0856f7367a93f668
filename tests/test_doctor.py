"""`sightline doctor`: what it says of the machine, and that its self-test can fail."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sightline import doctor
from sightline.cli.doctor import command
from sightline.extras import EXTRAS


def test_it_works_here_and_names_every_part() -> None:
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert [check["name"] for check in content["checks"]] == [
        *("caption", "explanation", "scores", "METEOR")
    ]
    assert all(check["held"] for check in content["checks"])
    machine = content["machine"]
    for part in EXTRAS:
        assert part in machine["parts installed"] + machine["parts missing"]
    assert "torch 2" in machine["packages"]
    assert str(Path.home()) not in result.stdout


def test_a_wrong_value_or_a_crash_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash() -> tuple[bool, str]:
        raise RuntimeError("no kernel\nfor this processor")

    monkeypatch.setattr(doctor, "_caption", crash)
    monkeypatch.setattr(doctor, "_explanation", lambda: (True, ""))
    monkeypatch.setattr(doctor, "_METEOR", ("a dog", "a dog", 0.5))
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 1
    assert "caption:          FAILS" in result.stdout
    assert "RuntimeError: no kernel for this processor" in result.stdout
    assert "METEOR:           FAILS" in result.stdout
