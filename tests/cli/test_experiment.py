"""`sightline experiment` on a captioner of random weights that knows nothing but shapes."""

import json

import pytest
import yaml
from click.testing import CliRunner

from sightline.cli.experiment import command
from sightline.cli.localise import command as localise
from sightline.data.scene_drawing import SHAPES
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import SightlineError


@pytest.fixture(scope="module")
def run(save_captioner, tmp_path_factory):
    """A checkpoint with a recipe beside it, as a run has one."""
    folder = save_captioner(tmp_path_factory.mktemp("runs") / "shapes", words=tuple(SHAPES))
    recipe = {
        "data": {"scenes": {"train": 2, "dev": 1, "test": 6, "size": 64}},
        "model": {"name": "soft_attention"},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_list():
    result = invoke()
    assert result.exit_code == 0
    assert "explanations    Which explanation method points" in result.stdout
    assert "paper4-figure3  How much relevance" in result.stdout


def test_explanations_of_scenes_by_every_measure(run, tmp_path):
    options = ["--set", "pixel_curves=6", "--set", "shuffled=6"]
    options += ["--set", "methods=[lrp, attention, grad_cam]"]
    result = invoke("explanations", run, *options, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout == (tmp_path / "table.md").read_text()
    rows = {row["map"]: row for row in json.loads((tmp_path / "data.json").read_text())["rows"]}
    assert {"lrp", "lrp, regions", "attention", "grad_cam", "random"} == rows.keys()
    for row in rows.values():
        for column in ("inside", "pointed", "regions", "pixels"):
            low, mean, high = (row[column][name] for name in ("low", "mean", "high"))
            assert low - 1e-9 <= mean <= high + 1e-9, column
        assert len(row["curves"]["pixels"]) == 4
    assert abs(rows["attention"]["inside"]["mean"]) < 0.05  # at random weights, it knows nothing
    assert rows["attention"]["shuffled"]["mean"] < 0.9
    assert rows["lrp"]["seconds"]["mean"] > 0
    # What a map calls most relevant does more to the word than what it calls least relevant.
    assert rows["lrp, regions"]["regions"]["mean"] > abs(rows["random"]["regions"]["mean"])


def test_figure_3(run, tmp_path):
    methods = ("--set", "methods=[attention, lrp]")
    result = invoke("paper4-figure3", run, *methods, "--pictures", 3, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "data.json").read_text())
    curves = data["curves"]["shapes"]
    assert len(curves["lrp"]["positive"]) == len(data["thresholds"]) == 10
    assert 0 < curves["area"] < 0.3
    assert abs(curves["attention"]["positive"][0] - curves["area"]) < 0.05
    assert "| shapes | " in result.stdout


def test_boxes_are_read_for_data_that_has_none(run, tmp_path):
    path = write_scenes(make_scene_dataset(1, 1, 3, size=64), tmp_path / "scenes")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        del record["boxes"]
    path.write_text("\n".join(map(json.dumps, records)))
    asked = ("paper4-figure3", run, "--data", path, "--set", "methods=[attention]")
    error = invoke(*asked, "-o", tmp_path / "none").exception
    assert isinstance(error, SightlineError)
    assert str(error) == "none of the 3 pictures has boxes; give a file with --boxes"
    # Whatever shape is named: it is on the left half of every picture.
    names = [{"id": record["image"], "file_name": record["image"]} for record in records]
    content = {
        "images": [name | {"width": 64, "height": 64} for name in names],
        "categories": [{"id": n, "name": shape} for n, shape in enumerate(SHAPES)],
        "annotations": [
            {"image_id": name["id"], "category_id": n, "bbox": [0, 0, 32, 64]}
            for name in names
            for n in range(len(SHAPES))
        ],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    result = invoke(*asked, "--boxes", tmp_path / "boxes.json", "-o", tmp_path / "some")
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "some" / "data.json").read_text())
    assert data["curves"]["shapes"]["area"] == 0.5


def test_errors(run, checkpoint, tmp_path):
    folder = ("-o", tmp_path)
    for arguments, expected in (
        (("explanation", run, *folder), "no experiment is called 'explanation'; did you mean"),
        (("explanations", run), "give the folder for the table and the figure with -o"),
        (("explanations", checkpoint, *folder), "not a training run (no recipe.yaml); give the"),
        (("explanations", run, *folder, "--set", "methods=[lpr]"), "no method is called 'lpr'"),
        (("explanations", run, *folder, "--set", "method=lrp"), "did you mean 'methods'?"),
        (("explanations", run, *folder, "--set", "shuffled"), "must be an option, an equals sign"),
        (("explanations", run, *folder, "--split", "val"), "no picture is in split 'val'"),
        (("explanations", tmp_path / "none", *folder), "none does not exist"),
    ):
        error = invoke(*arguments).exception
        assert isinstance(error, SightlineError), arguments  # one line, and exit code 2
        assert expected in str(error)
        assert "\n" not in str(error)


def test_localise_says_where_it_went(run):
    error = CliRunner().invoke(localise, [str(run), "--boxes", "b.json"]).exception
    assert isinstance(error, SightlineError)
    assert "paper4-figure3 makes its table" in str(error)
