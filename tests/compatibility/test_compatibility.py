"""Files that version 0.1 wrote are read, and its runs go on to the same weights."""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file

import sightline
from sightline.checkpoint import find_checkpoint, load_config, read_pointers
from sightline.evaluation.results import results_of
from sightline.recipe import load_recipe
from sightline.training.loop import train

HERE = Path(__file__).parent


def test_an_interrupted_run_goes_on_to_the_weights_that_0_1_ended_with(tmp_path, monkeypatch):
    """It stopped in its second phase, which 0.1 called a stage, three steps after a checkpoint."""
    monkeypatch.chdir(tmp_path)  # where its region cache is to be
    run = Path(shutil.copytree(HERE / "run-0.1", "run"))
    train(load_recipe(run / "recipe.yaml"), run)
    ended = load_file(run / read_pointers(run)["last"] / "model.safetensors")
    expected = load_file(HERE / "whole-0.1.safetensors")
    assert ended.keys() == expected.keys()
    for name, tensor in expected.items():
        # (Processors add in other orders; 0.1 and today on one machine agree bit for bit.)
        torch.testing.assert_close(ended[name], tensor, rtol=1e-4, atol=1e-5, msg=name)
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    whole = [json.loads(line) for line in (HERE / "whole-0.1.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [line["step"] for line in whole]
    assert [row.objective for row in results_of(run)] == ["reinforce", "reinforce, then reinforce"]


def test_a_checkpoint_of_0_1_captions(examples):
    folder = find_checkpoint(HERE / "run-0.1")
    assert load_config(folder)["sightline"] == "0.1.0"
    assert find_checkpoint(HERE / "run-0.1", phase=1) == folder
    caption = sightline.load(folder).caption(examples / "cat.jpg")
    assert caption.words


def test_recipes_name_objectives_as_0_1_did(tmp_path):
    path = tmp_path / "recipe.yaml"
    then = "[{objective: {name: variational}, epochs: 1}]"
    path.write_text(f"data: {{path: x}}\nobjective: {{name: discriminated}}\nthen: {then}\n")
    phases = load_recipe(path).phases()
    assert [phase.objective["name"] for phase in phases] == ["adversarial_pretraining", "reinforce"]
