"""`sightline localise` on a captioner of random weights that knows nothing but shapes."""

import json

import pytest
import yaml
from click.testing import CliRunner

from sightline.cli.localise import command
from sightline.data.scene_drawing import SHAPES
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import DataError, SightlineError


@pytest.fixture(scope="module")
def run(save_captioner, tmp_path_factory):
    """A checkpoint with a recipe beside it, as a run has one."""
    folder = save_captioner(tmp_path_factory.mktemp("runs") / "shapes", words=tuple(SHAPES))
    recipe = {
        "data": {"scenes": {"train": 2, "dev": 1, "test": 5, "size": 64}},
        "model": {"name": "soft_attention"},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_a_page_with_table_and_figure(run, tmp_path):
    page, figure = tmp_path / "page.md", tmp_path / "figure.svg"
    result = invoke(run, "--method", "attention", "--method", "lrp", "--figure", figure, "-o", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "`sightline localise runs/shapes --split test --method attention --method lrp" in text
    assert "| shapes | soft_attention |" in text
    assert "(figure.svg)" in text
    assert str(tmp_path) not in text
    assert figure.stat().st_size > 1000


def test_json_has_a_row_for_each_run_and_method(run):
    result = invoke(run, run, "--method", "attention", "--method", "grad_cam", "--json")
    rows = json.loads(result.stdout)
    assert [row["method"] for row in rows] == ["attention", "grad_cam"] * 2
    assert rows[:2] == rows[2:]
    for row in rows:
        assert 0 < row["inside"] < 1
        assert row["interval"][0] <= row["inside"] <= row["interval"][1]
        assert 0 < row["area"] < 0.3
        assert row["pictures"] <= row["words"]
    # Attention at random weights knows nothing: about as much is inside as the boxes cover.
    assert abs(rows[0]["inside"] - rows[0]["area"]) < 0.05


def test_boxes_are_read_for_data_that_has_none(run, tmp_path):
    path = write_scenes(make_scene_dataset(1, 1, 3), tmp_path / "scenes")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        del record["boxes"]
    path.write_text("\n".join(map(json.dumps, records)))
    asked = (run, "--data", path, "--method", "attention", "--json")
    error = invoke(*asked).exception
    assert isinstance(error, DataError)
    assert str(error) == "none of the 3 pictures has boxes; give a file with --boxes"

    # Whatever shape is named: it is on the left half of every picture.
    names = [{"id": record["image"], "file_name": record["image"]} for record in records]
    content = {
        "images": [name | {"width": 128, "height": 128} for name in names],
        "categories": [{"id": n, "name": shape} for n, shape in enumerate(SHAPES)],
        "annotations": [
            {"image_id": name["id"], "category_id": n, "bbox": [0, 0, 64, 128]}
            for name in names
            for n in range(len(SHAPES))
        ],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    result = invoke(*asked, "--boxes", tmp_path / "boxes.json")
    assert json.loads(result.stdout)[0]["area"] == 0.5
    assert json.loads(result.stdout)[0]["pictures"] == 3

    table = invoke(*asked[:-1], "--boxes", tmp_path / "boxes.json", "--pictures", 2).stdout
    assert len(table.splitlines()) == 3
    assert int(table.splitlines()[2].split(" | ")[2]) < json.loads(result.stdout)[0]["words"]


def test_errors(run, checkpoint, tmp_path):
    for arguments, expected in (
        ((checkpoint,), "not a training run (no recipe.yaml); give the dataset with --data"),
        ((run, "--method", "lpr"), "no explanation method is called 'lpr'"),
        ((run, "--split", "validation"), "no picture is in split 'validation'"),
        ((tmp_path / "none",), "none: "),
    ):
        error = invoke(*arguments).exception
        assert isinstance(error, SightlineError)  # one line, and exit code 2
        assert expected in str(error)
        assert "\n" not in str(error)
