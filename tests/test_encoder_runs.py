"""The encoder law: a command runs the image encoder once per picture, and opens a file once."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import sightline
from sightline.cli.main import cli
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.encoders.encoder import Encoder


@pytest.fixture
def encoded(monkeypatch) -> list[int]:
    """How many pictures each run of the encoder was given, as regions of them were asked for."""
    sizes: list[int] = []
    forward = Encoder.forward

    def counted(self, pixels, windows):
        sizes.append(len(pixels))
        return forward(self, pixels, windows)

    monkeypatch.setattr(Encoder, "forward", counted)
    return sizes


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The files that were opened to be captioned."""
    names: list[str] = []
    open_picture = sightline.pictures.open_picture

    def counted(source, reduced_to=None):
        if isinstance(source, Path | str):
            names.append(Path(source).name)
        return open_picture(source, reduced_to)

    read_bytes = sightline.files.read_bytes

    def counted_read(path, limit):
        names.append(Path(path).name)
        return read_bytes(path, limit)

    monkeypatch.setattr("sightline.captioner.encoding.open_picture", counted)
    monkeypatch.setattr("sightline.bulk.items.read_bytes", counted_read)
    return names


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("option", ["--check", "--avoid-unsupported", "--n-best=3"])
def test_captions(fitted_checkpoint, examples, encoded, opened, option):
    pictures = [examples / "cat.jpg", examples / "coffee.jpg"]
    run("caption", *pictures, "--model", fitted_checkpoint, option)
    assert encoded == [2]
    assert sorted(opened) == ["cat.jpg", "coffee.jpg"]


def test_three_methods_and_two_words_that_were_not_said(
    fitted_checkpoint, examples, encoded, tmp_path
):
    methods = [f"--method={name}" for name in ("lrp", "attention", "guided_grad_cam")]
    others = ["--caption=a red cat", "--why-not=cup", "--why-not=coffee"]
    output = tmp_path / "why.json"
    run(
        *("explain", examples / "cat.jpg", "--model", fitted_checkpoint, "-o", output),
        *methods,
        *others,
    )
    assert len(json.loads(output.read_text())["explanations"]) == 3 * (3 + 2)
    assert encoded == [1]


def test_evaluation_encodes_what_is_not_cached(checkpoint, encoded, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    data = write_scenes(make_scene_dataset(1, 1, 3), tmp_path / "scenes")
    arguments = ("evaluate", checkpoint, "--data", data, "-o", tmp_path, "--metrics", "bleu")
    run(*arguments)
    assert encoded == [3]
    run(*arguments)
    assert encoded == [3]


def test_what_is_encoded_stays_encoded(fitted_checkpoint, examples, encoded):
    captioner = sightline.load(fitted_checkpoint)
    picture = captioner.encode(examples / "cat.jpg")
    caption = captioner.caption(picture, check=True)
    captioner.check(picture, caption)
    captioner.read(picture, "a red cat")
    captioner.explain(picture, caption)
    captioner.counterfactual(picture, captioner.read(picture, "a red cat"), "cup")
    captioner.report(picture, methods=["attention"])
    assert encoded == [1]
    assert captioner.encode([picture, examples / "coffee.jpg"])[0] is picture
    assert encoded == [1, 1]


def test_a_report_explains_the_regions_that_it_captioned(fitted_checkpoint, examples, tmp_path):
    """A large JPEG is decoded at another size to be shown; its regions are those of the caption."""
    from PIL import Image

    large = tmp_path / "large.jpg"
    Image.open(examples / "cat.jpg").resize((4000, 2660)).save(large)
    captioner = sightline.load(fitted_checkpoint)
    report = captioner.report(large, caption="a red cat", methods=["lrp"])
    assert max(report.picture.size) == 1024
    read = captioner.read(large, "a red cat")
    assert report.caption.log_probability == read.log_probability
    alone = captioner.explain(captioner.encode(large), "a red cat")
    for why, other in zip(report.explanations, alone, strict=True):
        assert why.regions.tolist() == other.regions.tolist()
