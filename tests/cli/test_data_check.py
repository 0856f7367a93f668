"""`sightline data check`."""

import json

import pytest
from click.testing import CliRunner
from PIL import Image

from sightline.cli.main import cli
from sightline.data.readers import read_dataset
from sightline.errors import DataError


def run(*arguments):
    return CliRunner().invoke(cli, ["data", "check", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path):
    """Two sound pictures, and a caption file that also has an empty caption and a phantom."""
    for name, colour in {"a.png": "red", "b.png": "blue"}.items():
        Image.new("RGB", (8, 8), colour).save(tmp_path / name)
    return tmp_path


def save(folder, *records):
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


A = {"image": "a.png", "captions": ["a red picture"], "split": "train"}
B = {"image": "b.png", "captions": ["a blue picture", ""], "split": "dev"}
PHANTOM = {"image": "[/bold] [1].png", "captions": ["nothing"], "split": "train"}


def test_a_sound_dataset(folder):
    save(folder, A)
    result = run(folder)
    assert result.exit_code == 0
    assert result.stdout == "No errors: 1 pictures (1 train), 1 captions.\n"


def test_a_picture_without_split_is_mentioned_and_accepted(folder):
    save(folder, A | {"split": None})
    result = run(folder)
    assert result.exit_code == 0
    assert "picture in no split" in result.stdout


def test_findings_are_named_and_exit_code_is_1(folder):
    save(folder, A, B, PHANTOM)
    result = run(folder)
    assert result.exit_code == 1
    assert "picture file missing" in result.stdout
    assert "[/bold] [1].png" in result.stdout  # no markup, whatever it looks like
    assert "empty caption" in result.stdout
    assert (
        "Usable: 2 pictures (1 dev, 1 train), 2 captions; the dataset lists 3 pictures"
        in result.stdout
    )
    assert "Use --fix FILE.jsonl to write a cleaned copy" in result.stdout


def test_json(folder):
    save(folder, A, B, PHANTOM)
    result = run(folder, "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert (content["images"], content["usable"]) == (3, 2)
    assert {(f["kind"], f["error"], f["image"]) for f in content["findings"]} == {
        ("picture file missing", True, "[/bold] [1].png"),
        ("empty caption", True, "b.png"),
    }


def test_fix_writes_a_cleaned_copy_beside_the_untouched_original(folder):
    original = save(folder, A, B, PHANTOM)
    before = original.read_bytes()
    copy = folder / "elsewhere" / "clean.jsonl"
    result = run(folder, "--fix", copy)
    assert result.exit_code == 1
    assert f"Cleaned copy written to {copy}: 2 pictures" in result.stdout
    assert original.read_bytes() == before
    cleaned = read_dataset(copy)
    assert [image.captions for image in cleaned] == [("a red picture",), ("a blue picture",)]
    assert [image.id for image in cleaned] == ["a.png", "b.png"]
    assert run(copy).exit_code == 0


def test_fix_overwrites_nothing(folder):
    original = save(folder, A)
    before = original.read_bytes()
    for path, reason in (
        (original, "exists already"),
        (folder / "clean.json", "must end in .jsonl"),
    ):
        result = run(folder, "--fix", path)
        assert isinstance(result.exception, DataError)
        assert reason in str(result.exception)
    assert original.read_bytes() == before


def test_the_first_few_or_all(folder):
    save(folder, A, *({"image": f"no{n}.png", "captions": ["x"]} for n in range(6)))
    assert "and 3 more (--all)" in run(folder).stdout
    assert "no5.png" not in run(folder).stdout
    assert "no5.png" in run(folder, "--all").stdout


def test_long_names_are_not_cut_short(folder):
    name = "".join(f"{number:04d}-" for number in range(30)) + ".png"
    save(folder, A, {"image": name, "captions": ["x"], "split": "train"})
    assert "…" not in run(folder).stdout


def test_boxes_are_kept_in_the_copy(folder):
    save(folder, B)
    content = {
        "images": [{"id": 1, "file_name": "b.png", "width": 8, "height": 8}],
        "categories": [{"id": 1, "name": "picture"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 8]}],
    }
    (folder / "instances.json").write_text(json.dumps(content))
    run(folder, "--boxes", folder / "instances.json", "--fix", folder / "clean.jsonl")
    (image,) = read_dataset(folder / "clean.jsonl").images
    assert image.groundings[0].boxes == ((0.0, 0.0, 0.5, 1.0),)


def test_pictures_in_another_folder(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("captions")
    save(elsewhere, A)
    assert run(elsewhere).exit_code == 1
    assert run(elsewhere, "--images", folder).exit_code == 0


def test_a_cleaned_copy_of_a_sound_dataset_is_mentioned_too(folder, tmp_path):
    save(folder, A)
    result = run(folder, "--fix", tmp_path / "clean.jsonl")
    assert result.exit_code == 0
    written = f"Cleaned copy written to {tmp_path / 'clean.jsonl'}: 1 pictures (1 train), 1 caption"
    assert written in result.stdout
    assert len(read_dataset(tmp_path / "clean.jsonl")) == 1
