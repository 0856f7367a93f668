"""`sightline check-plugin`: a line for each law, and exit codes."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sightline import plugins
from sightline.cli.check_plugin import command
from sightline.errors import ConfigError

METHOD = """
from sightline.explain.attention import attention
from sightline.explain.methods import Method

def late(targets):
    result = attention(targets)
    return result._replace(words=result.words + {addend})

METHODS = {{"late": Method(late, "Late", "…")}}
"""


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_used", [])

    def check(text: str | None, *options: str) -> Result:
        if text is not None:
            (tmp_path / "checked_plugin.py").write_text(text)
        return CliRunner().invoke(command, ["checked_plugin", *options])

    yield check
    sys.modules.pop("checked_plugin", None)


def test_laws_that_hold(check) -> None:
    result = check(METHOD.format(addend=0))
    assert result.exit_code == 0, result.output
    assert "5 of 5 laws hold." in result.output
    assert "it ends at the regions" in " ".join(result.output.split())


def test_a_law_that_is_broken(check) -> None:
    result = check(METHOD.format(addend=1), "--json")
    assert result.exit_code == 1
    broken = [verdict for verdict in json.loads(result.stdout) if not verdict["holds"]]
    assert [(v["kind"], v["subject"], v["law"]) for v in broken] == [
        ("method", "late", "later words have nothing, and change nothing")
    ]
    assert broken[0]["why"] == "words: more than nothing for a later word"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "plug-in checked_plugin: there is no such module here"),
        ("1 / 0", "plug-in checked_plugin: cannot be imported (ZeroDivisionError"),
        ("", "plug-in checked_plugin: it has no MODELS, OBJECTIVES, METHODS or ENCODERS"),
        ("METHODS = {'late': 1}", "plug-in checked_plugin: 'late' must be a Method, not int"),
        ("METHODS = {'lrp': 1}", "'lrp' is the name of one of Sightline's own methods"),
    ],
)
def test_what_cannot_be_checked_is_one_line(check, text: str | None, says: str) -> None:
    result = check(text)
    assert isinstance(result.exception, ConfigError)
    assert says in str(result.exception)
