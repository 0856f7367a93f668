"""An audit from captions to the report: what is counted, kept, compared and refused."""

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import sightline
from sightline.audit.audit import audit_captions
from sightline.audit.summary import audit_scores, summarise
from sightline.captioner import Captioner
from sightline.errors import ConfigError, DataError
from sightline.kept_records import Record
from sightline.server.audit import read_page


def word(text: str, verdict: str | None, support: float | None, **more: object) -> Record:
    kinds = {"cat": "object", "red": "colour", "mug": "object"}
    return {"text": text, "verdict": verdict, "support": support, "kind": kinds.get(text)} | {
        "log_probability": -1.0,
        "read_as": None,
        "instead": [{"text": "cup", "probability": 0.5}],
        **more,
    }


def record(*captions: tuple[int, list[Record]], name: str = "a.jpg") -> Record:
    said = [{"system": system, "text": "x", "words": words} for system, words in captions]
    return {"picture": name, "file": name, "unfamiliar": False, "captions": said, "problems": []}


CAT = word("cat", "not supported", 0.1)
RED = word("red", "seen", 0.9)
MUG = word("mug", "unknown", 0.2, read_as="cup")
RECORDS = [
    record((0, [word("a", None, None), CAT, RED]), (1, [RED]), name="a.jpg"),
    record((0, [CAT, MUG]), (1, [word("cat", "doubtful", 0.5)]), name="b.jpg"),
]


def test_verdicts_are_counted_and_unknown_words_apart() -> None:
    summary = summarise(RECORDS, 0)
    counts = {name: summary[name] for name in ("captions", "captions_marked", "words")}
    assert counts == {"captions": 2, "captions_marked": 2, "words": 4}
    assert [summary[v] for v in ("seen", "doubtful", "not supported", "unknown")] == [1, 0, 2, 1]
    assert [(row["kind"], row["words"]) for row in summary["kinds"]] == [
        ("object", 3),
        ("colour", 1),
    ]
    (made_up,) = summary["made_up"]
    assert (made_up["text"], made_up["said"], made_up["unsupported"]) == ("cat", 2, 2)
    assert made_up["examples"] == [[0, 0], [1, 0]]
    assert made_up["instead"] == ["cup"]
    assert summary["unknown_words"] == [{"text": "mug", "read_as": "cup", "said": 1}]
    # Shares are of the words that the judge knows: 2 of 3.
    assert summary["scores"]["words not supported"]["value"] == pytest.approx(2 / 3)


def test_calibration_is_what_references_confirm() -> None:
    references = [("a cat sits",), ("a dog",)]
    bins = summarise(RECORDS, 0, references)["calibration"]
    assert [(each["low"], each["words"], each["right"]) for each in bins] == [
        (0.1, 2, 0.5),
        (0.9, 1, 0.0),
    ]


def test_scores_of_a_resampled_corpus_are_ratios_of_sums() -> None:
    unsupported = audit_scores(RECORDS, 0)[0]
    assert unsupported.per_image.tolist() == [0.5, 1.0]
    assert unsupported.resampled(RESAMPLED).tolist() == pytest.approx([2 / 3, 0.5, 1.0])


RESAMPLED = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])


@pytest.fixture(scope="module")
def captioner(fitted_checkpoint: Path) -> Captioner:
    return sightline.load(fitted_checkpoint)


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    rows = [
        ("cat.jpg", "A red cat on the table"),
        ("coffee.jpg", "an espresso in a red mug"),
        ("nothing.jpg", "a cup"),
        ("cat.jpg", "..."),
    ]
    return write(tmp_path / "vendor.csv", rows)


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("file_name", "caption"), *rows])
    return path


def test_an_audit_writes_tables_a_document_and_a_report(
    captioner: Captioner, vendor: Path, examples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    document = audit_captions(vendor, folder, examples, captioner=captioner, pages=1)
    assert document == json.loads((folder / "audit.json").read_text("utf-8"))
    (system,) = document["systems"]
    assert system["captions"] == 2
    with (folder / "words.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["word"] for row in rows] == ["red", "cat", "table", "espresso", "red", "mug"]
    by_word = {row["word"]: row for row in rows}
    assert by_word["mug"]["verdict"] == by_word["espresso"]["verdict"] == "unknown"
    assert (by_word["mug"]["read_as"], by_word["espresso"]["read_as"]) == ("cup", "coffee")
    assert system["unknown"] == 2
    assert system["words"] == 6
    assert document["judge"]["words"] == len(captioner.vocabulary.to_json())
    assert [each["why"] for each in document["problems"]] == [
        "a caption has no words",
        "there is no such picture",
    ]
    doubts = [picture["doubt"] for picture in document["pictures"]]
    assert doubts == sorted(doubts, reverse=True)
    worst = document["pictures"][0]
    assert (folder / worst["page"]).is_file()
    assert document["pictures"][1]["page"] is None
    page = (folder / "report.html").read_text("utf-8")
    assert "data:image/jpeg" in page
    assert "http" not in page.replace("http-equiv", "")  # nothing is fetched
    if (folder / "words.parquet").exists():
        from pyarrow import parquet

        table = parquet.read_table(folder / "words.parquet")
        assert table.column("word").to_pylist() == [row["word"] for row in rows]


def test_names_and_captions_that_are_no_utf8(
    captioner: Captioner, examples: Path, tmp_path: Path
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    shutil.copy(examples / "cat.jpg", photos / os.fsdecode(b"caf\xe9.jpg"))
    row = {"image": "caf\udce9.jpg", "caption": "a red cat \ud83d"}
    (tmp_path / "vendor.jsonl").write_text(json.dumps(row))
    folder = tmp_path / "report"
    audit_captions(tmp_path / "vendor.jsonl", folder, photos, captioner=captioner, pages=1)
    (picture,) = json.loads((folder / "audit.json").read_bytes())["pictures"]
    assert picture["name"] == "caf\\udce9.jpg"
    assert picture["captions"][0]["text"] == "a red cat"
    for page in ("report.html", picture["page"]):
        json.dumps(read_page(folder / page), ensure_ascii=False).encode()  # as the server sends it
    with (folder / "words.csv").open(newline="") as file:
        assert [row["word"] for row in csv.DictReader(file)] == ["red", "cat"]


def test_an_interrupted_audit_goes_on_and_another_is_refused(
    captioner: Captioner, vendor: Path, examples: Path, tmp_path: Path, monkeypatch
) -> None:
    folder = tmp_path / "report"
    whole = audit_captions(vendor, folder, examples, captioner=captioner, pages=0)
    judged = folder / "judged.jsonl"
    lines = judged.read_text("utf-8").splitlines(keepends=True)
    judged.write_text("".join(lines[:2]) + lines[2][:20], "utf-8")  # killed in the middle
    read: list[str] = []
    original = Captioner.read
    monkeypatch.setattr(
        Captioner,
        "read",
        lambda self, p, text, **o: read.append(text) or original(self, p, text, **o),
    )
    assert audit_captions(vendor, folder, examples, captioner=captioner, pages=0) == whole
    assert read == ["an espresso in a red mug"]
    vendor.write_text(vendor.read_text() + "cat.jpg,a cup\n")
    with pytest.raises(ConfigError, match="holds measurements of other"):
        audit_captions(vendor, folder, examples, captioner=captioner, pages=0)


def test_two_systems_are_compared_on_the_same_pictures(
    captioner: Captioner, vendor: Path, examples: Path, tmp_path: Path
) -> None:
    other = write(
        tmp_path / "other.csv", [("coffee.jpg", "a cup of coffee"), ("raccoon.jpg", "a cat")]
    )
    references = tmp_path / "captions.jsonl"
    lines = [{"image": "coffee.jpg", "captions": ["a cup of coffee on a table"]}]
    references.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = audit_captions(
        vendor,
        tmp_path / "report",
        examples,
        against=other,
        captioner=captioner,
        references=references,
        metrics=["rouge-l"],
        pages=0,
    )
    assert [system["name"] for system in document["systems"]] == ["vendor", "other"]
    rows = {row["name"]: row for row in document["comparison"]}
    # Only the cup of coffee was captioned by both: there the judge knows "red", and both words.
    assert rows["words unknown to the judge"]["value"] == pytest.approx(2 / 3)
    assert rows["words unknown to the judge"]["other"] == 0
    assert rows["words unknown to the judge"]["difference"] == pytest.approx(2 / 3)
    assert rows["ROUGE-L"]["other"] > rows["ROUGE-L"]["value"]
    assert document["systems"][1]["metrics"]["ROUGE-L"] == pytest.approx(rows["ROUGE-L"]["other"])
    assert document["systems"][0]["calibration"]
    assert "" not in [picture["name"] for picture in document["pictures"]]


def test_references_of_other_pictures_and_files_as_folders_are_refused(
    captioner: Captioner, vendor: Path, examples: Path, tmp_path: Path
) -> None:
    references = tmp_path / "captions.jsonl"
    references.write_text('{"image": "other.jpg", "captions": ["a dog"]}\n')
    with pytest.raises(DataError, match="has none of the pictures"):
        audit_captions(
            vendor, tmp_path / "r", examples, captioner=captioner, references=references, pages=0
        )
    with pytest.raises(ConfigError, match="is a file"):
        audit_captions(vendor, vendor, examples, captioner=captioner)
