"""`hf:FOLDER` on every command: captioners of transformers do what captioners of ours do."""

import json
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
import uvicorn
from click.testing import CliRunner

import sightline
from sightline.adapters.tiny import tiny
from sightline.cli.main import cli
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import CheckpointError, ConfigError, SightlineError
from sightline.regions import Regions
from sightline.server.app import create_app
from sightline.server.run import SECTIONS, listen
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf
from sightline.support.classifier import SupportClassifier, save_classifier
from sightline.support.logistic import Logistic


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """`hf:` and the folder of a tiny BLIP, fitted to check words."""
    folder = tmp_path_factory.mktemp("captioners") / "theirs"
    model, (image_processor, tokenizer) = tiny("blip")
    for part in (model, image_processor, tokenizer):
        part.save_pretrained(folder)
    regions = Regions(torch.rand(3, 17, 16), torch.ones(3, 17) > 0, torch.rand(3, 17, 4))
    likely = Logistic(np.zeros(2), np.ones(2), np.array([0.0, 4.0]), 2.0)
    names = ("relevance_mean", "log_probability")
    save_classifier(folder, SupportClassifier(names, likely, 0.7, 0.4, regions))
    return f"hf:{folder}"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "scenes"
    write_scenes(make_scene_dataset(0, 0, 3, size=32), folder)
    return folder


@pytest.fixture(scope="module")
def pictures(data):
    return sorted(data.rglob("*.png"))


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def test_bulk_with_check_and_the_same_bytes_after_an_interruption(model, pictures, tmp_path):
    whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
    options = ["--model", model, "--check", "--require", "dog", "--max-length", 3, "-o"]
    run("caption", *pictures, *options, whole)
    rows = [json.loads(line) for line in whole.read_text().splitlines()]
    assert [Path(row["path"]).name for row in rows] == [path.name for path in pictures]
    assert any(word["verdict"] for row in rows for word in row["words"])
    assert rows[0]["model"].startswith("theirs:")
    run("caption", pictures[0], *options, resumed)
    run("caption", *pictures, *options, resumed, "--skip-existing")
    assert resumed.read_bytes() == whole.read_bytes()


def test_several_captions_and_those_without_unsupported_words(model, pictures):
    given = ["--model", model, "--max-length", 4]
    (row,) = json.loads(run("caption", pictures[0], *given, "--n-best", 3, "--json"))
    assert len(row["captions"]) == 3
    run("caption", pictures[0], *given, "--avoid-unsupported", "--avoid", "dog")


def test_explain_why_not_makes_a_page(model, pictures, tmp_path):
    page = tmp_path / "why.html"
    given = ["--model", model, "--caption", "a dog barks", "--why-not", "cat", "-o", page]
    run("explain", pictures[0], *given, "--method", "lrp", "--method", "attention")
    text = page.read_text()
    assert all(word in text for word in ("barks", "cat", "Attention"))


def test_evaluate(model, data, tmp_path):
    run("evaluate", model, "--data", data, "--metrics", "bleu", "-o", tmp_path / "scores")
    assert json.loads((tmp_path / "scores" / "scores.json").read_text())["pictures"] == 3
    with pytest.raises(CheckpointError, match="was not trained here"):
        CliRunner().invoke(
            cli, ["evaluate", model, "--data", str(data), "--phase", "1"], catch_exceptions=False
        )


def test_audit_judges_words_of_several_pieces(model, pictures, tmp_path):
    captions = tmp_path / "captions.jsonl"
    row = json.dumps({"image": str(pictures[0]), "caption": "a red espresso"})
    captions.write_text(row + "\n")
    run("audit", captions, "--model", model, "-o", tmp_path / "audit", "--pages", 1)
    report = json.loads((tmp_path / "audit" / "audit.json").read_text())
    (system,) = report["systems"]
    assert (system["captions"], system["words"]) == (1, 2)


def test_experiments_measure_it_or_say_why_not(model, data, tmp_path):
    given = [model, "--data", data, "--split", "test", "--pictures", 1, "-o"]
    table = run("experiment", "paper4-figure5", *given, tmp_path / "figure")
    assert "| theirs |" in table
    for name, why in (("paper2-figure4", "sets no goals"), ("paper0-figure2", "Transformers")):
        refused = CliRunner().invoke(
            cli, ["experiment", name, *map(str, given), str(tmp_path / name)]
        )
        assert isinstance(refused.exception, SightlineError)
        assert why in str(refused.exception)


def test_it_is_served_and_asked_by_our_own_client(model, pictures):
    """The API, in our own shape and in OpenAI's: a captioner behind HTTP may be one of ours."""
    settings = Settings(port=0)
    shelf = Shelf([Path(model)], "cpu", settings.loaded)
    assert shelf.names == ("theirs",)
    listening = listen(settings)
    server = uvicorn.Server(
        uvicorn.Config(create_app(settings, SECTIONS, shelf), log_level="error")
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    try:
        content = pictures[0].read_bytes()
        files = {"image": ("picture.png", content)}
        said = httpx.post(f"{address}/caption", files=files, data={"check": "true"}, timeout=60)
        assert said.status_code == 200, said.text
        (caption,) = said.json()["captions"]
        ours = sightline.load(model).caption(content)
        assert caption["text"] == ours.text
        remote = sightline.load(f"{address}#theirs").caption(content)
        assert remote.words
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_server_is_not_started_for_a_folder_that_is_not_there():
    with pytest.raises(CheckpointError, match="there is no such folder"):
        Shelf([Path("hf:./nowhere")])


def test_a_name_of_the_hub_without_network_is_one_line(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="cannot be fetched from the Hugging Face Hub") as no:
        sightline.load("hf:nobody/nothing-here")
    assert "\n" not in str(no.value)


def test_what_is_for_captioners_of_ours_alone_is_one_line(model, tmp_path):
    for command in (["export", "--onnx"], ["pack"]):
        refused = CliRunner().invoke(cli, [*command, model, "-o", str(tmp_path / command[0])])
        assert isinstance(refused.exception, SightlineError), refused.output
        assert "\n" not in str(refused.exception)
        assert not (tmp_path / command[0]).exists()


def test_the_check_is_kept_in_a_copy(model, data, tmp_path):
    with pytest.raises(ConfigError, match="exists already"):
        CliRunner().invoke(
            cli,
            ["fit-support", model, "--data", str(data), "-o", str(tmp_path)],
            catch_exceptions=False,
        )
