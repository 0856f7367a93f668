"""What `sightline evaluate` writes; that a trained model's scores are right is in test_learning."""

import csv
import json
import math
import shutil

import numpy as np
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

import sightline
from sightline.cli.evaluate import command
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import ConfigError, DataError, MissingExtraError
from sightline.extras import EXTRAS
from sightline.metrics import Score
from sightline.metrics.diversity import diversity


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def test_what_is_undefined_is_null_a_dash_or_an_empty_cell(checkpoint, tmp_path, monkeypatch):
    def measure(candidates, references, metrics):
        size = Score("SPICE size", math.nan, np.array([math.nan, math.nan]))
        count = Score("SPICE [b]count", 0.25, np.array([math.nan, 1 / 3]))
        return {size.name: size, count.name: count}

    monkeypatch.setattr("sightline.evaluation.evaluate.score", measure)
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 2), tmp_path / "scenes")
    options = [str(checkpoint), "--data", str(data), "-o", str(tmp_path / "out"), "--beam", "1"]
    table = CliRunner().invoke(command, options, catch_exceptions=False).stdout
    lines = [line.split() for line in table.splitlines()]
    assert ["SPICE", "size", "–"] in lines
    assert ["SPICE", "[b]count", "25.00"] in lines
    summary = json.loads((tmp_path / "out" / "scores.json").read_text(), parse_constant=no_constant)
    assert summary["scores"] == {"SPICE size": None, "SPICE [b]count": 0.25}
    with (tmp_path / "out" / "per-image.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["SPICE size"] for row in rows] == ["", ""]
    assert [row["SPICE [b]count"] for row in rows] == ["", "0.333333"]


def evaluate_without_meteor(checkpoint, tmp_path, monkeypatch, *options):
    monkeypatch.setitem(EXTRAS, "meteor", ("not_installed_here",))
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 2), tmp_path / "scenes")
    folder = tmp_path / "out"
    arguments = [str(checkpoint), "--data", str(data), "-o", str(folder), "--beam", "1", *options]
    return CliRunner().invoke(command, arguments), folder


def test_default_metrics_are_those_installed(checkpoint, tmp_path, monkeypatch):
    result, folder = evaluate_without_meteor(checkpoint, tmp_path, monkeypatch)
    assert result.exit_code == 0
    (left_out,) = [line for line in result.stderr.splitlines() if "left out" in line]
    assert left_out.endswith("meteor is left out, because it is not installed: "
                             "pip install 'sightline[meteor]'")  # fmt: skip
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    assert "CIDEr-D" in scores
    assert "METEOR" not in scores


def test_a_metric_asked_for_and_missing_is_refused_before_the_work(
    checkpoint, tmp_path, monkeypatch
):
    options = ("--metrics", "bleu,meteor")
    result, folder = evaluate_without_meteor(checkpoint, tmp_path, monkeypatch, *options)
    assert isinstance(result.exception, MissingExtraError)
    assert not folder.exists()
    assert not (tmp_path / "cache").exists()  # no picture was encoded


def test_a_metric_that_needs_a_clip_model_is_refused_before_the_work(
    checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 2), tmp_path / "scenes")
    options = ["--data", str(data), "-o", str(tmp_path / "out"), "--metrics", "bleu,pac_s"]
    result = CliRunner().invoke(command, [str(checkpoint), *options])
    assert isinstance(result.exception, DataError)
    assert "sightline score captions.json --metrics pac-s --clip" in str(result.exception)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "cache").exists()  # no picture was encoded


def test_without_a_run_it_is_the_bundled_captioner_that_is_evaluated(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 2), tmp_path / "scenes")
    monkeypatch.chdir(tmp_path)
    options = ["--data", str(data), "--metrics", "bleu"]
    assert CliRunner().invoke(command, options, catch_exceptions=False).exit_code == 0
    captions = json.loads((tmp_path / "evaluation-test" / "captions.json").read_text())
    bundled = sightline.load().caption(sorted((tmp_path / "scenes" / "images").glob("test*")))
    assert sorted(c["caption"] for c in captions) == sorted(c.text for c in bundled)
    summary = json.loads((tmp_path / "evaluation-test" / "scores.json").read_text())
    assert summary["bad_endings"] == diversity([c.text for c in bundled]).bad_endings
    own = sightline.load().options  # which differ from the defaults of a search
    assert (summary["beam"], summary["length_power"]) == (own.beam, own.length_power) == (5, 0.7)

    result = CliRunner().invoke(command, [])
    assert isinstance(result.exception, ConfigError)
    assert "--data" in str(result.exception)


def test_several_runs_caption_together(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 8), tmp_path / "scenes")
    other = shutil.copytree(checkpoint, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    save_file(
        {name: t + torch.randn(t.shape, generator=generator) for name, t in weights.items()},
        other / "model.safetensors",
    )
    config = json.loads((other / "config.json").read_text())
    del config["sha256"]  # of the weights that were there
    (other / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    options = ["--data", str(data), "--metrics", "bleu"]
    together = [str(checkpoint), str(other), *options]
    assert CliRunner().invoke(command, together, catch_exceptions=False).exit_code == 0
    captions = json.loads((tmp_path / "evaluation-test" / "captions.json").read_text())
    pictures = sorted((tmp_path / "scenes" / "images").glob("test*"))

    def captioned_by(*folders):
        return sorted(c.text for c in sightline.load(*folders).caption(pictures))

    said = sorted(caption["caption"] for caption in captions)
    assert said == captioned_by(checkpoint, other)
    assert said != captioned_by(checkpoint)
    assert said != captioned_by(other)
    assert not (checkpoint / "evaluation-test").exists()


def test_pictures_of_a_test_server_are_captioned_and_not_scored(checkpoint, tmp_path, monkeypatch):
    """COCO's `image_info_test2014.json` lists pictures whose captions are secret."""
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    scenes = make_scene_dataset(1, 1, 2, size=64)
    folder = tmp_path / "test2014"
    folder.mkdir()
    names = []
    for number, image in enumerate(scenes.split("test")):
        names.append({"id": 7 + number, "file_name": f"{number}.png", "width": 64, "height": 64})
        image.picture.save(folder / f"{number}.png")
    listing = tmp_path / "annotations" / "image_info_test2014.json"
    listing.parent.mkdir()
    listing.write_text(json.dumps({"info": {}, "images": names, "categories": []}))
    options = [str(checkpoint), "--data", str(listing), "-o", str(tmp_path / "out"), "--beam", "1"]
    result = CliRunner().invoke(command, options, catch_exceptions=False)
    assert "have no captions to score against" in result.stdout
    captions = json.loads((tmp_path / "out" / "captions.json").read_text())
    assert [caption["image_id"] for caption in captions] == [7, 8]
    assert all(caption["caption"] for caption in captions)
    assert not (tmp_path / "out" / "scores.json").exists()
