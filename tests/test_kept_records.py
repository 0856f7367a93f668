"""Records of long work: kept as they were made, and refused if they are not."""

import json

import pytest

from sightline.errors import ConfigError, DataError
from sightline.kept_records import KeptRecords

ABOUT = {"seed": 0}
RECORD = {"words": 3, "support": [0.5, None, float("inf")]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "measurements.jsonl"
    records = KeptRecords(path, ABOUT)
    records.add("1.jpg", RECORD)
    records.add("2.jpg", {})
    return path


def test_what_was_kept_is_there_without_the_line_that_was_cut_off(path):
    with path.open("a") as file:
        file.write('{"task": "3.jpg", "rec')
    records = KeptRecords(path, ABOUT)
    assert records["1.jpg"] == RECORD
    assert "3.jpg" not in records
    records.add("3.jpg", {"words": 1})
    assert KeptRecords(path, ABOUT)["3.jpg"] == {"words": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"words": 3', '"words": 4'),
        ('"2.jpg"', '"4.jpg"'),
        ('"crc32"', '"crc"'),
        (', "crc32"', ', "crc32": 1, "other"'),
    ],
)
def test_a_record_that_was_changed_is_refused(path, old, new):
    text = path.read_text()
    head, _, rest = text.partition("\n")
    assert old in rest
    path.write_text(f"{head}\n{rest.replace(old, new)}")
    with pytest.raises(DataError, match=r"measurements.jsonl, line [23]: "):
        KeptRecords(path, ABOUT)


def test_other_work_is_refused_and_files_without_checksums_are_read(path):
    with pytest.raises(ConfigError, match="holds measurements of other"):
        KeptRecords(path, {"seed": 1})
    lines = [json.dumps(ABOUT), json.dumps({"task": "1.jpg", "record": RECORD})]
    path.write_text("\n".join(lines) + "\n")
    assert KeptRecords(path, ABOUT)["1.jpg"] == RECORD
