"""`sightline experiment` on a captioner of random weights that knows nothing but shapes."""

import json
import shutil

import pytest
import yaml
from click.testing import CliRunner

from sightline.cli.experiment import command
from sightline.data.scene_drawing import SHAPES
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import SightlineError
from sightline.training.run import Position


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
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["explanations"].startswith("Which explanation method points")
    assert lines["paper4-figure3"].startswith("How much relevance")
    assert {"paper1-table1", "paper2-figure4", "paper4-table5"} <= lines.keys()


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
            if low is None:  # of one picture
                assert isinstance(mean, float), column
            else:
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
        (("explanations", run, *folder, "--set", "seed=2024-13-45"), "--set seed=2024-13-45: not"),
        (("explanations", run, *folder, "--split", "val"), "no picture is in split 'val'"),
        (("explanations", tmp_path / "none", *folder), "none does not exist"),
    ):
        error = invoke(*arguments).exception
        assert isinstance(error, SightlineError), arguments  # one line, and exit code 2
        assert expected in str(error)
        assert "\n" not in str(error)


def test_a_phase_of_a_run_is_a_captioner_of_its_own(run, tmp_path):
    folder = tmp_path / "two"
    folder.mkdir()
    for number in (1, 2):
        shutil.copytree(run, folder / f"step-{number}", ignore=shutil.ignore_patterns("recipe*"))
    recipe = yaml.safe_load((run / "recipe.yaml").read_text()) | {
        "then": [{"objective": {"name": "cross_entropy"}, "epochs": 3}]
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    pointers = {"best": "step-2", "last": "step-2", "stage-1": "step-1", "stage-2": "step-2"}
    (folder / "checkpoints.json").write_text(json.dumps(pointers))
    for phase in (0, 1):
        position = Position(phase=phase).to_json()
        (folder / f"step-{phase + 1}" / "training.json").write_text(json.dumps(position))
    options = ("--set", "metrics=[bleu]", "--pictures", 2, "-o", tmp_path / "out")
    result = invoke("paper1-table1", f"{folder}:1", folder, *options)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "out" / "data.json").read_text())
    assert data["captioners"] == ["two:1", "two"]
    assert data["data"] == "medium scenes"
    assert data["budgets"]["two:1"].endswith("scenes, 20 epochs of cross_entropy")
    assert data["budgets"]["two"].endswith(", then 3 epochs of cross_entropy")
    assert data["rows"]["two:1"] == data["rows"]["two"]
    # What is measured is the best checkpoint, which may be of before the last phase.
    (folder / "checkpoints.json").write_text(json.dumps(pointers | {"best": "step-1"}))
    best = (*options[:-1], tmp_path / "best")
    assert invoke("paper1-table1", folder, *best).exit_code == 0
    data = json.loads((tmp_path / "best" / "data.json").read_text())
    assert data["budgets"]["two"].endswith("scenes, 20 epochs of cross_entropy")
    error = invoke("paper1-table1", f"{folder}:3", *options).exception
    assert "2 phases have ended, so there is no phase 3" in str(error)
