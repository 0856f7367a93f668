"""`sightline fit-support`: what it stores, prints and refuses."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from PIL import Image

import sightline
from sightline.cli.fit_support import command
from sightline.data.dataset import CaptionDataset
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.data.unlike_photographs import unlike_photographs
from sightline.encoded_picture import join_regions
from sightline.errors import ConfigError, DataError
from sightline.support.classifier import FILE, load_classifier
from sightline.support.word_scores import MEANING


@pytest.fixture
def scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scenes of which half the references say words that the captioner knows."""
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sightline.evaluation.support.OTHER_KINDS", 12)
    made = make_scene_dataset(1, 30, 6, size=64)
    said = ("the red cup", "a cat sits on the table", "coffee")
    images = tuple(
        replace(image, captions=(said[n % 3],), groundings=()) for n, image in enumerate(made)
    )
    return write_scenes(CaptionDataset(images), tmp_path / "scenes")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_it_stores_what_caption_checks_by_and_reports(
    checkpoint: Path, scenes: Path, tmp_path: Path, examples: Path
) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "checkpoint")
    result = run(folder, "--data", scenes, "--report-on", "test", "--words", "cup,cat", "--json")
    assert result.exit_code == 0, result.output
    reports = json.loads(result.stdout)
    assert [report["pictures"] for report in reports] == [
        "dev, fitted on",
        "dev, fitted on, these words alone",
        "dev, captions that people wrote",
        "dev, captions that people wrote, these words alone",
        "test",
        "test, these words alone",
        "test, captions that people wrote",
        "test, captions that people wrote, these words alone",
    ]
    assert list(reports[2]["scores"]) == [
        *("log_probability", "log_ratio", "mention", "mention_ratio", "combination")
    ]
    fitted = reports[0]
    # Sixteen training pictures are too few for a detector of words.
    names = [name for name in MEANING if name not in ("detected", "frequency")]
    assert list(fitted["scores"]) == [*names, "combination"]
    for found in fitted["scores"].values():
        assert 0 <= found["low"] <= found["auc"] <= found["high"] <= 1
    assert sum(found["words"] for found in fitted["verdicts"].values()) == fitted["words"]
    assert sum(found["words"] for found in fitted["calibration"]) == fitted["words"]
    shares = [found["words"] * found["right"] for found in fitted["calibration"]]
    assert sum(shares) == pytest.approx(fitted["right"])
    assert reports[1]["words"] < fitted["words"]
    own = [report for report in reports if "people wrote" not in report["pictures"]]
    assert all(0 <= report["unfamiliar"] < 0.5 for report in own)
    captioner = sightline.load(folder)
    called = [captioner.caption(picture).unfamiliar for picture in unlike_photographs(12)]
    assert sum(called) > 6

    caption = sightline.load(folder).captions([examples / "cat.jpg"], check=True)[0][0]
    assert any(word.support for word in caption.words)
    stored = (folder / FILE).read_bytes()
    figure = tmp_path / "calibration.png"
    again = run(folder, "--data", scenes, "--no-fit", "--report-on", "test", "--figure", figure)
    with Image.open(figure) as drawn:
        assert drawn.format == "PNG"
    assert (folder / FILE).read_bytes() == stored
    assert load_classifier(folder).foreign is not None
    value = reports[4]["scores"]["combination"]["auc"]
    lines = [line.split() for line in again.stdout.splitlines()]
    assert ["combination", "–" if value is None else f"{value:.3f}"] in [x[:2] for x in lines]
    first = reports[4]["calibration"][0]
    assert [f"{first['low']:.1f}–{first['high']:.1f}", str(first["words"])] in [
        x[:2] for x in lines
    ]
    assert "Stored in" not in again.stdout


def test_other_pictures_may_be_given(
    checkpoint: Path, scenes: Path, tmp_path: Path, examples: Path
) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "checkpoint")
    others = examples / "c*.jpg"
    result = run(folder, "--data", scenes, "--others", others, "--json")
    assert result.exit_code == 0, result.output
    captioner = sightline.load(folder)
    pictures = [captioner.open(path) for path in sorted(examples.glob("c*.jpg"))]
    reference_regions, expected = (
        captioner.support_classifier.reference_regions.vectors,
        join_regions(captioner.encode(pictures)).vectors,
    )
    torch.testing.assert_close(reference_regions[1:], expected, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(
        reference_regions[0],
        expected.mean((0, 1)).expand_as(reference_regions[0]),
        rtol=2e-3,
        atol=2e-3,
    )


def test_mistakes(checkpoint: Path, scenes: Path) -> None:
    for arguments, error, says in (
        (("--data", scenes, "--no-fit"), ConfigError, "--no-fit needs --report-on"),
        (("--data", scenes, "--figure", "curve.bmp"), ConfigError, "must end in .png, .svg, .pdf"),
        (("--data", scenes, "--report-on", "dev"), ConfigError, "'dev' is the split of the fit"),
        (("--data", scenes, "--split", "val"), DataError, "no picture is in split 'val'"),
        (("--data", scenes, "--split", "test"), DataError, "6 pictures are too few to fit on"),
        (("--data", scenes, "--no-fit", "--report-on", "test"), ConfigError, "not fitted"),
        ((), ConfigError, "give the dataset with --data"),
    ):
        result = run(checkpoint, *arguments)
        assert isinstance(result.exception, error), result.output
        assert says in str(result.exception)
    assert not (checkpoint / FILE).exists()


def test_a_copy_is_there_only_once_it_is_fitted(
    checkpoint: Path, scenes: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copies"
    for split in ("typo", "test"):  # no such split; too few pictures
        result = run(checkpoint, "--data", scenes, "--split", split, "-o", folder / "copy")
        assert isinstance(result.exception, DataError), result.output
        assert not list(folder.iterdir())


def test_the_bundled_captioner_is_fitted_in_a_copy(
    checkpoint: Path, scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.checkpoint.pointers.BUNDLED", checkpoint)
    refused = run("--data", scenes)
    assert "give a folder for a copy with -o" in str(refused.exception)
    result = run("--data", scenes, "-o", tmp_path / "copy")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "copy" / FILE).is_file()
    assert not (checkpoint / FILE).exists()
    assert f"Stored in {tmp_path / 'copy'}." in result.stdout.replace("\n", "")
    inside = tmp_path / "copy" / "inside"
    assert run(tmp_path / "copy", "--data", scenes, "-o", inside).exit_code == 0
    assert sorted(path.name for path in inside.iterdir()) == sorted(
        path.name for path in (tmp_path / "copy").iterdir() if path != inside
    )
    again = run("--data", scenes, "-o", tmp_path / "copy")
    assert "exists already" in str(again.exception)


def test_the_bundled_captioner_can_be_reported_on(
    fitted_checkpoint: Path, scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.checkpoint.pointers.BUNDLED", fitted_checkpoint)
    result = run("--no-fit", "--report-on", "test", "--data", scenes)
    assert result.exit_code == 0, result.output
    assert "pictures called unfamiliar: 0.0%" in result.stdout
