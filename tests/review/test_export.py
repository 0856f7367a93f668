"""Exports hold what a person decided, and leave alone what others wrote."""

import csv
import io
import json

import pytest

from sightline.bulk.xmp import read_texts
from sightline.errors import ConfigError
from sightline.review.export import export_sidecars, export_table


@pytest.fixture
def decided(captioned):
    ids = {entry.name: entry.id for entry in captioned.entries()}
    captioned.decide(ids["cat.jpg"], "accepted")
    captioned.decide(ids["inner/cat.jpg"], "edited", 'a "rocket", ready')
    captioned.decide(ids["flower.jpg"], "rejected")
    captioned.ids = ids
    return captioned


def test_tables(decided):
    lines = b"".join(export_table(decided, "jsonl")).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["decision"] for row in rows] == ["accepted", "edited"]
    assert rows[0]["caption"] == rows[0]["captioner_said"]
    assert rows[0]["words"]
    assert rows[1]["caption"] == 'a "rocket", ready'
    assert rows[1]["words"] is None  # the verdicts were of other words
    assert rows[1]["captioner_said"] != rows[1]["caption"]
    table = b"".join(export_table(decided, "csv", undecided=True)).decode()
    cells = {row["path"].split("photos/")[1]: row for row in csv.DictReader(io.StringIO(table))}
    assert len(cells) == 5
    assert cells["inner/cat.jpg"]["caption"] == 'a "rocket", ready'
    assert cells["flower.jpg"]["caption"] == ""  # rejected
    assert cells["coffee.jpg"]["decision"] == "open"
    assert cells["coffee.jpg"]["caption"]
    with pytest.raises(ConfigError, match="no table"):
        list(export_table(decided, "xls"))


@pytest.mark.parametrize("format", ["txt", "xmp"])
def test_sidecars_follow_the_review_and_spare_others(decided, photos, format):
    def texts(name):
        path = photos / f"{name}.{format}"
        return read_texts(path)[0] if format == "xmp" else path.read_text().strip()

    first = export_sidecars(decided, format)
    assert (first.written, first.unchanged, first.kept) == (2, 0, ())
    assert texts("inner/cat") == 'a "rocket", ready'
    assert not (photos / f"flower.{format}").exists()
    assert not (photos / f"coffee.{format}").exists()
    # Edited again: the review's own text is replaced.
    decided.decide(decided.ids["inner/cat.jpg"], "edited", "a rocket")
    second = export_sidecars(decided, format)
    assert (second.written, second.unchanged) == (1, 1)
    assert texts("inner/cat") == "a rocket"
    # Somebody else wrote one meanwhile: it stays, and is named.
    path = photos / f"cat.{format}"
    content = path.read_text("utf-8").replace(texts("cat"), "Grandmother's cat")
    path.write_text(content, "utf-8")
    decided.decide(decided.ids["cat.jpg"], "edited", "a cat")
    third = export_sidecars(decided, format)
    assert third.kept == ("cat.jpg",)
    assert texts("cat") == "Grandmother's cat"


def test_sidecars_elsewhere(decided, tmp_path):
    export_sidecars(decided, "txt", tmp_path / "out")
    assert (tmp_path / "out" / "inner" / "cat.txt").read_text() == 'a "rocket", ready\n'
    with pytest.raises(ConfigError, match="no sidecar"):
        export_sidecars(decided, "csv")


def test_xmp_that_cannot_be_read_is_left(decided, photos):
    (photos / "cat.xmp").write_text("not xml")
    assert export_sidecars(decided, "xmp").kept == ("cat.jpg",)
    assert (photos / "cat.xmp").read_text() == "not xml"
