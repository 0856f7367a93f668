"""JSON, YAML and CSV from outside: plain finite values, or one line."""

import contextlib
import json
import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import ConfigError, DataError, SightlineError
from sightline.parsing import (
    DEPTH,
    parse_json,
    parse_yaml,
    read_csv,
    read_json,
    read_json_lines,
)

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_json_that_is_plain_arrives(content):
    assert parse_json(json.dumps(content), "x") == content


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, "1" * 5_000, "NaN", "[Infinity]", '{"a": -Infinity}', "\x00", b"\xff",
     "[" * (DEPTH + 1) + "]" * (DEPTH + 1), '{"a":' * 100_000],
    ids=range(11),
)  # fmt: skip
def test_json_that_is_not_is_one_line(text):
    with pytest.raises(DataError, match=r"^x: (not JSON|nested too deeply)") as error:
        parse_json(text, "x", DataError)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@given(st.text() | st.binary().map(lambda content: content.decode("latin-1")))
def test_any_text_is_yaml_or_one_line(text):
    with contextlib.suppress(ConfigError):
        parse_yaml(text, "x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &a [x]\nb: [*a, *a]", r"write out what \*a is"),
        ("[" * 50_000, "nested too deeply"),
        ("- " * 5_000 + "x", "nested too deeply"),
        ("a: 1\na: 2", "'a' is given twice"),
        ("1" * 5_000, "not YAML that is read here"),
        ("!!python/object/apply:os.system [ls]", "not YAML"),
    ],
)
def test_yaml_that_could_unfold_or_run_is_refused(text, says):
    with pytest.raises(ConfigError, match=says):
        parse_yaml(text, "x")


@pytest.mark.parametrize("text", ["5e-4", "5E-4", "1e5", "-2e+3", "1.5e-3", "7_0e1"])
def test_powers_of_ten_are_numbers(text):
    number = parse_yaml(f"rate: {text}", "x")["rate"]
    assert math.isclose(number, float(text))


@pytest.mark.parametrize("content", ["{}".encode("utf-16"), b"\xff\xfe{}", b"\x80"])
def test_other_encodings_are_one_line(content, tmp_path):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(SightlineError, match=r"x\.json: is not UTF-8"):
        read_json(tmp_path / "x.json")


def test_a_byte_order_mark_is_no_content(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "x.json") == [1]


def test_a_file_has_a_limit(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(ConfigError, match="larger than 0 megabytes"):
        read_json(tmp_path / "x.json", limit=2)


def test_whole_numbers_have_an_end():
    assert parse_json("1" + "0" * 299, "x") == 10**299
    with pytest.raises(ConfigError, match="x: not JSON \\(a number of too many digits"):
        parse_json("1" + "0" * 300, "x")


def test_messages_have_an_end():
    message = str(ConfigError("begin " + "é" * 5000 + " end"))
    assert len(message) < 1300
    assert message.startswith("begin é")
    assert message.endswith("é end")


def test_lines_are_read_one_by_one_and_a_bad_one_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n[1, 2]\n{"a": NaN}\n')
    lines = read_json_lines(path)
    assert next(lines) == (f"{path}, line 1", {"a": 1})
    assert next(lines)[1] == [1, 2]
    with pytest.raises(DataError, match="line 3: not JSON"):
        next(lines)


def test_tables_have_a_cell_for_each_column(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("\ufeffimage\tcaption\n1.jpg\n\n2.jpg\ta dog\tmore\n", "utf-8")
    names, rows = read_csv(path, "\t")
    assert names == ["image", "caption"]
    assert list(rows) == [["1.jpg", ""], ["2.jpg", "a dog"]]
    path.write_bytes(b"image\n\xff\n")
    with pytest.raises(DataError, match="cannot be read as CSV in UTF-8"):
        list(read_csv(path)[1])
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path / "nothing.csv")


@pytest.mark.parametrize("read", [read_csv, lambda path: next(read_json_lines(path))])
def test_a_pipe_is_no_table(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a regular file"):
        read(tmp_path / "pipe")
