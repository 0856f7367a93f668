"""Captions that somebody delivered: every format, pictures by every name, and what is refused."""

import json
from pathlib import Path

import pytest
from PIL import Image

from sightline.audit.deliveries import read_delivery
from sightline.errors import DataError

NAMES = ("a.jpg", "sub/b.png", "COCO_val2014_000000000042.jpg")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for name in NAMES:
        Image.new("RGB", (8, 8)).save(folder / name)
    return folder


def found(path: Path, photos: Path | None) -> list[tuple[str | None, str]]:
    captions = read_delivery(path, photos).captions
    return [(each.picture and each.picture.name, each.text) for each in captions]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.csv", "file_name,caption\na.jpg,a dog\nb,two cats\n"),
        ("v.tsv", "image\ttext\na\ta dog\nsub/b.png\ttwo cats\n"),
        ("v.jsonl", '{"image": "a.jpg", "caption": "a dog"}\n{"path": "b", "text": "two cats"}\n'),
        ("w.jsonl", '{"image": "x/a.jpg", "captions": ["a dog"]}\n{"id": "b", "alt": "two cats"}'),
        (
            "v.json",
            '[{"image_id": "a", "caption": "a dog"}, {"image_id": "b", "text": "two cats"}]',
        ),
    ],
)
def test_tables_are_read(photos: Path, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert found(tmp_path / name, photos) == [("a.jpg", "a dog"), ("b.png", "two cats")]


def test_coco_numbers_its_pictures(photos: Path, tmp_path: Path) -> None:
    results = [{"image_id": 42, "caption": "a dog"}, {"image_id": 43, "caption": "a cat"}]
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert found(tmp_path / "results.json", photos) == [(NAMES[2], "a dog"), (None, "a cat")]


def test_a_dataset_is_a_delivery_of_all_its_captions(photos: Path, tmp_path: Path) -> None:
    content = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"image_id": 1, "caption": "a dog"}, {"image_id": 1, "caption": "a pet"}],
    }
    (tmp_path / "captions_val.json").write_text(json.dumps(content))
    assert found(tmp_path / "captions_val.json", photos) == [("a.jpg", "a dog"), ("a.jpg", "a pet")]


def test_parquet_is_read(photos: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"file_name": ["a.jpg"], "caption": ["a dog"], "score": [0.5]})
    parquet.write_table(table, tmp_path / "v.parquet")
    assert found(tmp_path / "v.parquet", photos) == [("a.jpg", "a dog")]


def test_sidecars_and_metadata_lie_in_folders(photos: Path) -> None:
    (photos / "a.txt").write_text("a  dog\n")
    (photos / "sub" / "b.txt").write_text("two cats")
    assert found(photos, None) == [("a.jpg", "a dog"), ("b.png", "two cats")]
    (photos / "metadata.jsonl").write_text('{"file_name": "a.jpg", "text": "a pup"}\n')
    assert found(photos, None) == [("a.jpg", "a pup")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.csv", "name_of_it,caption\na,b\n", "which is the picture? It has name_of_it, caption"),
        ("v.csv", "path,words\na,b\n", "which is the caption? It has path, words; call it caption"),
        ("v.csv", "path,caption\n", "holds no captions"),
        ("v.jsonl", '{"path": "a", "caption": 3}', "line 1: its caption is not a text"),
        ("v.jsonl", '{"path": [], "caption": "a"}', "line 1: names no picture"),
        ("v.jsonl", "[]", "line 1: not an object"),
        ("v.json", "3", "neither a list of captions nor a dataset"),
        ("v.docx", "", "captions are a .csv"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path, name, content, message) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as raised:
        read_delivery(tmp_path / name)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_absent_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_delivery(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="no such folder of pictures"):
        read_delivery(tmp_path, tmp_path / "nothing")
