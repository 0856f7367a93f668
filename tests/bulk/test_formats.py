"""Formats, read by the programs that people read them with."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import sightline
from sightline.bulk.parquet import ParquetParts
from sightline.errors import ConfigError
from sightline.evaluation.scorable import read_scorable

SETTINGS = {"batch_size": 3, "workers": 1}


@pytest.fixture
def texts(captioner, album, tmp_path) -> dict[str, str]:
    """Captions by path, as JSON lines have them."""
    sightline.caption_all(album, tmp_path / "truth.jsonl", captioner=captioner, **SETTINGS)
    rows = map(json.loads, (tmp_path / "truth.jsonl").read_text("utf-8").splitlines())
    return {row["path"]: row["caption"] for row in rows}


def test_tables_are_the_same_in_pandas(captioner, album, tmp_path, texts):
    import pandas

    for suffix in ("csv", "parquet"):
        output = tmp_path / f"captions.{suffix}"
        sightline.caption_all(album, output, captioner=captioner, **SETTINGS)
    csv, parquet = pandas.read_csv(tmp_path / "captions.csv"), None
    parquet = pandas.read_parquet(tmp_path / "captions.parquet")
    lines = pandas.read_json(tmp_path / "truth.jsonl", lines=True)
    for table in (csv, parquet, lines):
        assert list(table.columns) == [
            *("path", "sha256", "caption", "log_probability", "words", "unfamiliar"),
            *("model", "version"),
        ]
        assert dict(zip(table["path"], table["caption"], strict=True)) == texts
    assert csv["log_probability"].tolist() == parquet["log_probability"].tolist()
    for text, words in zip(csv["words"], parquet["words"], strict=True):
        assert json.loads(text) == [dict(word) for word in words]


def test_a_table_with_no_rows_has_its_columns(captioner, tmp_path):
    from pyarrow import parquet

    output = tmp_path / "captions.parquet"
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff")
    sightline.caption_all(tmp_path / "bad.jpg", output, captioner=captioner)
    table = parquet.read_table(output)
    assert table.num_rows == 0
    assert str(table.schema.field("words").type).startswith("list<element: struct<text: string")


def test_metadata_is_an_image_folder_of_datasets(captioner, album, texts, tmp_path):
    import datasets

    sightline.caption_all(album, album / "metadata.jsonl", captioner=captioner, **SETTINGS)
    folder = datasets.load_dataset(
        "imagefolder", data_dir=str(album), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert sorted(folder["text"]) == sorted(texts.values())
    paths = folder.cast_column("image", datasets.Image(decode=False))
    assert {row["image"]["path"]: row["text"] for row in paths} == texts


def test_pictures_that_metadata_cannot_name_fail_and_the_rest_goes_on(captioner, album, tmp_path):
    shutil.move(album / "palace.jpg", tmp_path / "elsewhere.jpg")
    (album / "link.jpg").symlink_to(tmp_path / "elsewhere.jpg")
    output, pictures = album / "metadata.jsonl", [tmp_path / "elsewhere.jpg", album]
    summary = sightline.caption_all(pictures, output, captioner=captioner, **SETTINGS)
    assert (summary.captioned, summary.failed) == (7, 1)
    rows = map(json.loads, output.read_text("utf-8").splitlines())
    assert "link.jpg" in [row["file_name"] for row in rows]
    (failure,) = map(json.loads, (album / "metadata.jsonl.failures.jsonl").open(encoding="utf-8"))
    assert (failure["path"], failure["kind"]) == (str(tmp_path / "elsewhere.jpg"), "output")
    assert "not in the folder of" in failure["error"]


def test_parts_are_counted_once(captioner, album, tmp_path, monkeypatch):
    output, listed = tmp_path / "parts", []
    parts = ParquetParts.parts
    options = {"captioner": captioner, "format": "parquet-parts", "batch_size": 1}
    sightline.caption_all(album / "inner", output, **options)
    monkeypatch.setattr(ParquetParts, "parts", lambda self: listed.append(1) or parts(self))
    sightline.caption_all(album, output, **options)
    assert sorted(p.name for p in output.iterdir()) == [f"part-{n:06d}.parquet" for n in range(7)]
    assert len(listed) == 2  # for what is there, and for the first number


def test_texts_beside_pictures_are_a_webdataset(captioner, album, texts, tmp_path):
    import webdataset

    sightline.caption_all(album, album, captioner=captioner, format="txt", **SETTINGS)
    shard = tmp_path / "shard.tar"
    subprocess.run(["tar", "--sort=name", "-cf", shard, "-C", album, "."], check=True)
    captions = {
        sample["__key__"]: sample["txt"].decode()
        for sample in webdataset.WebDataset(str(shard), shardshuffle=False)
        if "txt" in sample and ("jpg" in sample or "JPG" in sample)
    }
    assert captions["./inner/cat"] == texts[str(album / "inner" / "cat.jpg")] + "\n"
    assert captions["./cat"] == texts[str(album / "cat.jpg")] + "\n"


def test_texts_of_other_people_are_kept_and_nothing_is_overwritten(captioner, album, tmp_path):
    (album / "cat.txt").write_text("my own words")
    shutil.copy(album / "palace.jpg", album / "coffee.png")  # would share coffee.txt
    options = {"captioner": captioner, "format": "txt", **SETTINGS}
    summary = sightline.caption_all(album, album, **options)
    assert summary.skipped == 1
    assert (album / "cat.txt").read_text() == "my own words"
    assert (album / "coffee.txt").read_text() == captioner.caption(album / "coffee.jpg").text + "\n"
    assert (album / "coffee.png.txt").exists()
    again = sightline.caption_all(album, album, **options)
    assert (again.captioned, again.skipped) == (0, 8)
    sightline.caption_all(album, album, overwrite=True, **options)
    assert (album / "cat.txt").read_text() != "my own words"


def test_coco_results_are_scored(captioner, album, tmp_path):
    for number, name in enumerate(("cat", "palace")):
        shutil.copy(album / f"{name}.jpg", tmp_path / f"COCO_val2014_{number + 7:012d}.jpg")
    results = tmp_path / "results.json"
    sightline.caption_all(tmp_path / "COCO_*.jpg", results, captioner=captioner)
    rows = json.loads(results.read_text("utf-8"))
    assert [row["image_id"] for row in rows] == [7, 8]
    annotations = [{"id": n, "image_id": n + 7, "caption": "a cat"} for n in range(2)]
    images = [{"id": n, "file_name": f"COCO_val2014_{n:012d}.jpg"} for n in (7, 8)]
    references = tmp_path / "captions.json"
    references.write_text(json.dumps({"images": images, "annotations": annotations}))
    scorable = read_scorable(results, [references])
    assert scorable.candidates == tuple(row["caption"] for row in rows)


def test_two_pictures_never_share_an_id_of_coco(captioner, album, tmp_path):
    others = ("a/IMG_0001.jpg", "b/IMG_0001.jpg", "b/beach_1.jpg")
    for name in (*others, "a/1.jpg", "b/001.jpg"):
        (album / name).parent.mkdir(exist_ok=True)
        shutil.copy(album / "cat.jpg", album / name)
    names, results = [album / "a", album / "b"], tmp_path / "results.json"
    for skip_existing in (False, True):
        summary = sightline.caption_all(
            names, results, captioner=captioner, skip_existing=skip_existing
        )
        ids = [row["image_id"] for row in json.loads(results.read_text("utf-8"))]
        assert ids == [1, *(str(album / name) for name in others)]
        failures = (tmp_path / "results.json.failures.jsonl").read_text("utf-8")
        (failure,) = map(json.loads, failures.splitlines())
        assert "has the image_id 1 of another picture" in failure["error"]
    assert (summary.captioned, summary.skipped) == (0, 5)


def test_tasks_of_label_studio(fitted, album, tmp_path):
    output = tmp_path / "tasks.json"
    sightline.caption_all(
        album / "cat.jpg", output, captioner=fitted, format="label-studio", check=True
    )
    (task,) = json.loads(output.read_text("utf-8"))
    caption = fitted.caption(album / "cat.jpg", check=True)
    (prediction,) = task["predictions"]
    (result,) = prediction["result"]
    assert task["data"]["image"].endswith("cat.jpg")
    # As Label Studio's guide to predictions has it: the names of the two tags of the labelling
    # configuration, the type of the one that says it, and an id that no other result has.
    assert (result["type"], result["value"]) == ("textarea", {"text": [caption.text]})
    assert (result["from_name"], result["to_name"]) == ("caption", "image")
    assert len(result["id"]) == 16
    assert ":" in prediction["model_version"]  # the captioner's name and hash
    support = [word.support.score for word in caption.words if word.support]
    assert prediction["score"] == pytest.approx(sum(support) / len(support), abs=1e-5)


def test_labels_of_fiftyone(fitted, album, tmp_path):
    output = tmp_path / "labels"
    options = {"captioner": fitted, "format": "fiftyone", "check": True}
    sightline.caption_all(album / "cat.jpg", output, **options)
    again = sightline.caption_all(album, output, **options)
    assert (again.captioned, again.skipped) == (6, 1)
    paths = json.loads((output / "data.json").read_text("utf-8"))
    labels = json.loads((output / "labels.json").read_text("utf-8"))["labels"]
    assert set(paths) == set(labels)
    (uuid,) = [uuid for uuid, path in paths.items() if path == str(album / "cat.jpg")]
    (label,), caption = labels[uuid], fitted.caption(album / "cat.jpg", check=True)
    # FiftyOne makes a Detection of each entry: of its label, box and confidence, and its attributes
    # by their names; paths that are not absolute would be looked for beside data.json.
    assert set(label) == {"label", "bounding_box", "confidence", "attributes"}
    assert label["bounding_box"] == [0, 0, 1, 1]
    assert label["label"] == caption.text
    assert all(Path(path).is_absolute() and Path(path).is_file() for path in paths.values())
    spans = zip(label["attributes"]["start"], label["attributes"]["end"], strict=True)
    assert [label["label"][a:b] for a, b in spans] == [word.text for word in caption.words]
    support = [word.support.score for word in caption.words if word.support]
    assert label["confidence"] == pytest.approx(sum(support) / len(support), abs=1e-5)


def test_relative_pictures_of_fiftyone(captioner, album, tmp_path, monkeypatch):
    monkeypatch.chdir(album)
    options = {"captioner": captioner, "format": "fiftyone"}
    sightline.caption_all("cat.jpg", tmp_path / "labels", **options)
    (path,) = json.loads((tmp_path / "labels" / "data.json").read_text("utf-8")).values()
    assert path == str(album / "cat.jpg")
    assert sightline.caption_all("cat.jpg", tmp_path / "labels", **options).skipped == 1
    again = sightline.caption_all("coffee.jpg", tmp_path / "labels", overwrite=True, **options)
    assert again.captioned == 1
    (path,) = json.loads((tmp_path / "labels" / "data.json").read_text("utf-8")).values()
    assert path == str(album / "coffee.jpg")
    (tmp_path / "labels" / "labels.json").write_text("[]")
    with pytest.raises(sightline.SightlineError, match="not such a file"):
        sightline.caption_all("cat.jpg", tmp_path / "labels", **options)


def test_wrong_outputs(captioner, album, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for output, form, says in (
        (tmp_path / "captions.doc", None, "its suffix says no format"),
        (tmp_path / "captions.doc", "jsnl", "no format is called 'jsnl'; did you mean 'jsonl'"),
        (tmp_path / "file", "txt", "is a file, and --format txt writes into a folder"),
        (album, "csv", "is a folder, and --format csv writes a file"),
        (tmp_path / "other.jsonl", None, "exists already"),
    ):
        with pytest.raises(ConfigError, match=says):
            sightline.caption_all(album, output, captioner=captioner, format=form)
    before = (tmp_path / "other.jsonl").read_bytes()
    with pytest.raises(sightline.SightlineError, match="holds something else than captions"):
        sightline.caption_all(
            album, tmp_path / "other.jsonl", captioner=captioner, skip_existing=True
        )
    assert (tmp_path / "other.jsonl").read_bytes() == before
