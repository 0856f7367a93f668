import importlib
import json
import os
import sys
from pathlib import Path

import pytest

from sightline.errors import DataError, SightlineError
from sightline.metrics.spice.official import CORENLP_JARS, CORENLP_VARIABLE, spice

module = importlib.import_module(
    "sightline.metrics.spice.official"
)  # the package has the function so

CANDIDATES = ["a dog", "two cats"]
REFERENCES = [["a dog runs", "a puppy"], ["two cats sit"]]


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    monkeypatch.delenv(CORENLP_VARIABLE, raising=False)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A `pycocoevalcap` folder with the tool's jar."""
    folder = tmp_path / "pycocoevalcap"
    (folder / "spice").mkdir(parents=True)
    (folder / "spice" / "spice-1.0.jar").touch()
    monkeypatch.setattr(module, "pycocoevalcap_folder", lambda: folder)
    return folder


@pytest.fixture
def corenlp(tmp_path):
    folder = tmp_path / "corenlp"
    folder.mkdir()
    for name in CORENLP_JARS:
        (folder / name).touch()
    return folder


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Put a `java` on the PATH that keeps its command line and its input, and runs `body`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def install(body: str) -> Path:
        record = tmp_path / "record.json"
        program = programs / "java"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, pathlib, sys\n"
            "arguments = sys.argv[1:]\n"
            "at = arguments.index('edu.anu.spice.SpiceScorer')\n"
            "asked = json.loads(pathlib.Path(arguments[at + 1]).read_text())\n"
            f"pathlib.Path({str(record)!r}).write_text(json.dumps([arguments, asked]))\n"
            "answer = pathlib.Path(arguments[arguments.index('-out') + 1])\n" + body
        )
        program.chmod(0o755)
        return record

    return install


ANSWER = """
print('Parsing reference captions')
f = lambda value: {'f': value, 'pr': 0.5, 're': 0.5}
answer.write_text(json.dumps([
    {'image_id': 1, 'scores': {'All': f(0.75), 'Object': f(1.0), 'Relation': f(None),
                               'Attribute': f(0.5), 'Color': f(float('nan')),
                               'Cardinality': f(1.0), 'Size': f(None)}},
    {'image_id': 0, 'scores': {'All': f(0.25), 'Object': f(0.5), 'Relation': f(0.0),
                               'Attribute': f(0.0), 'Color': f(0.5),
                               'Cardinality': f(None), 'Size': f(None)}},
]))
"""


def test_asks_the_tool_and_reads_its_answer(wheel, corenlp, fake_java):
    record = fake_java(ANSWER)
    scores = spice(CANDIDATES, REFERENCES, corenlp=corenlp)
    arguments, asked = json.loads(record.read_text())
    assert arguments[:2] == ["-Xmx8G", "-cp"]
    assert arguments[2].split(os.pathsep) == [
        str(wheel / "spice" / "spice-1.0.jar"),
        *(str(corenlp / name) for name in CORENLP_JARS),
        str(wheel / "spice" / "lib" / "*"),
    ]
    assert arguments[3] == "edu.anu.spice.SpiceScorer"
    assert arguments[-1] == "-subset"
    assert "-cache" not in arguments
    assert asked == [
        {"image_id": 0, "test": "a dog", "refs": ["a dog runs", "a puppy"]},
        {"image_id": 1, "test": "two cats", "refs": ["two cats sit"]},
    ]
    values = {score.name: (score.corpus, score.per_image.tolist()) for score in scores}
    assert values["SPICE"] == (0.5, [0.25, 0.75])
    assert values["SPICE object"] == (0.75, [0.5, 1.0])
    # What the tool leaves undefined for a picture is left out of the category's mean.
    assert values["SPICE colour"][0] == 0.5
    assert values["SPICE count"][0] == 1.0
    assert values["SPICE relation"][0] == 0.0
    assert values["SPICE size"][0] != values["SPICE size"][0]


def test_the_folder_may_be_named_by_the_environment(wheel, corenlp, fake_java, monkeypatch):
    fake_java(ANSWER)
    monkeypatch.setenv(CORENLP_VARIABLE, str(corenlp))
    assert spice(CANDIDATES, REFERENCES)[0].corpus == 0.5


def test_a_picture_the_tool_finds_nothing_in_scores_nothing(wheel, corenlp, fake_java):
    undefined = "{'All': {'f': float('nan')}, 'Object': {'f': None}}"
    fake_java(
        f"answer.write_text(json.dumps([{{'image_id': i, 'scores': {undefined}}} for i in (0, 1)]))"
    )
    assert spice(CANDIDATES, REFERENCES, corenlp=corenlp)[0].corpus == 0.0


def message(**options):
    with pytest.raises(SightlineError) as caught:
        spice(CANDIDATES, REFERENCES, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_says_that_java_is_missing(wheel, corenlp, monkeypatch):
    monkeypatch.setenv("PATH", "")
    text = message(corenlp=corenlp)
    assert "no 'java' program on the PATH" in text
    assert "pycocoevalcap" not in text
    assert "stanford" not in text


def test_says_that_the_wheel_is_missing(corenlp, fake_java, monkeypatch):
    fake_java(ANSWER)
    monkeypatch.setattr(module, "pycocoevalcap_folder", lambda: None)
    text = message(corenlp=corenlp)
    assert "pip install 'sightline[spice]'" in text
    assert "java" not in text
    assert "stanford" not in text


def test_says_which_jar_is_missing_and_where_it_looked(wheel, corenlp, fake_java):
    fake_java(ANSWER)
    (corenlp / CORENLP_JARS[1]).unlink()
    text = message(corenlp=corenlp)
    assert f"no {CORENLP_JARS[1]} in '{corenlp}'" in text
    assert CORENLP_JARS[0] not in text


def test_says_how_to_name_the_folder_of_the_jars(wheel, fake_java):
    fake_java(ANSWER)
    text = message()
    assert all(name in text for name in CORENLP_JARS)
    assert "corenlp=" in text
    assert CORENLP_VARIABLE in text


def test_lists_everything_that_is_missing_at_once(monkeypatch):
    monkeypatch.setattr(module, "pycocoevalcap_folder", lambda: None)
    text = message(java="no-such-java")
    assert "no-such-java" in text
    assert "pycocoevalcap" in text
    assert CORENLP_JARS[0] in text


def test_passes_on_why_the_tool_failed(wheel, corenlp, fake_java):
    fake_java(
        "print('Exception in thread main\\nCaused by: java.io.IOException: no model\\n\\tat X', "
        "file=sys.stderr)\nsys.exit(1)\n"
    )
    assert message(corenlp=corenlp) == "SPICE failed: Caused by: java.io.IOException: no model"


def test_refuses_an_answer_that_misses_a_picture(wheel, corenlp, fake_java):
    fake_java("answer.write_text(json.dumps([{'image_id': 0, 'scores': {'All': {'f': 1.0}}}]))\n")
    assert "1 pictures of 2" in message(corenlp=corenlp)


def test_checks_shapes_before_anything_else():
    with pytest.raises(DataError, match="1 candidates"):
        spice(["a dog"], [])
