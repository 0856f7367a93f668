"""Every experiment that trains, from its command to its table, on a few scenes."""

import json
from math import isfinite

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file

from sightline.checkpoint import find_checkpoint
from sightline.cli.main import cli
from sightline.experiments.registry import EXPERIMENTS, find_experiment
from sightline.recipe import load_recipe

TINY = (
    *("data.scenes.train=6", "data.scenes.dev=3", "data.scenes.test=3", "data.scenes.size=64"),
    *("encoder.size=64", "batch.size=3", "epochs=1", "log_every=1", "logger=csv"),
)
TRANSFORMER = ("model.width=8", "model.heads=2", "model.feed_forward=8")
SIZES = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 16}
RECURRENT = ("model.region_width=8", "model.state_width=8", "model.attention_width=8")
HIERARCHICAL = ("model.region_width=8", "model.worker_width=8", "model.discriminator_width=8")

# Settings, overrides beside those of all, and the arms.
CASES = {
    "captioners": (
        ("recipes=[scenes/soft_attention, scenes/grid_td]", "metrics=[bleu, cider-d]"),
        ("model.state_width=8",),
        ["soft_attention", "grid_td"],
    ),
    "paper0-figure4": (
        ("penalties=[0.1, 0.01, 0.001]",),
        TRANSFORMER,
        ["lambda-0.1", "lambda-0.01", "lambda-0.001"],
    ),
    "paper0-table3": ((), TRANSFORMER, ["plain", "gate", "decay", "average", "max"]),
    "paper1-hard-soft": ((), RECURRENT, ["soft", "hard"]),
    "paper2-adversarial": (
        (),
        (*HIERARCHICAL, "then.0.objective.rollouts=1"),
        ["before", "control", "adversarial"],
    ),
    "paper3-table1": ((), (), ["spatial", "without-d_len", "soft-attention"]),
    "paper3-time": ((), (), ["spatial", "soft-attention"]),
    "paper4-table4": (
        ("steps=1", "batch=4"),
        ("model.state_width=8",),
        ["before", "control", "lrp-inference"],
    ),
}


def run_command(name, folder, settings, overrides, cache):
    listed = ", ".join((*TINY, *overrides))
    every = (f"overrides=[{listed}]", *settings)
    arguments = ["experiment", name, "-o", str(folder), "--cache", str(cache)]
    for setting in every:
        arguments += ["--set", setting]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads((folder / "data.json").read_text())


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def test_all_that_train_are_here():
    assert set(CASES) == {name for name in EXPERIMENTS if find_experiment(name).arms is not None}


@pytest.mark.parametrize("name", CASES)
def test_an_experiment_trains_its_arms_and_answers_its_claims(name, tmp_path, cache):
    settings, overrides, arms = CASES[name]
    data = run_command(name, tmp_path, ("seeds=1", *settings), overrides, cache)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == sorted(
        f"{arm}-0" for arm in arms
    )
    page = (tmp_path / "table.md").read_text()
    for arm in arms:
        assert f"{arm}: " in page.splitlines()[-1]  # its budget
        assert " on 6 " in data["budgets"][arm]  # as the overrides say
    for claim in find_experiment(name).claims:
        assert f"- {claim.place}: “{claim.statement}” *not tested*." in page  # by one seed
    records = [json.loads(line)["record"] for line in measurements(tmp_path)]
    assert [record["arm"] for record in records] == arms
    for record in records:
        numbers = [*record["dev"].values(), *record["test"].values()]
        assert all(isfinite(number) for number in numbers if number is not None)
        assert record["steps"] > 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (tmp_path / "figure.svg").read_text()
    if name == "paper2-adversarial":
        assert len({record["steps"] for record in records[1:]}) == 1
    if name == "captioners":
        assert list(data["gains"]) == ["grid_td - soft_attention"]


def measurements(folder):
    return (folder / "measurements.jsonl").read_text().splitlines()[1:]


def test_lrp_inference_can_tune_a_captioner_that_is_there(make_run, tmp_path, cache):
    """It is evaluated once, as it is; the arms begin with it, and see other orders of the data."""
    start = make_run("transformer", seed=3)
    sizes = [f"model.{key}={value}" for key, value in SIZES.items()]
    encoder = ("encoder.name=efficientnet_lite0", "encoder.stage=stage4")
    settings = ("seeds=2", f"start={start}", f"recipe={start / 'recipe.yaml'}", "steps=2")
    data = run_command("paper4-table4", tmp_path, (*settings, "batch=4"), (*sizes, *encoder), cache)
    records = [json.loads(line)["record"] for line in measurements(tmp_path)]
    assert [(r["arm"], r["seed"], r["steps"]) for r in records] == [
        ("before", 0, 0),
        ("control", 0, 2),
        ("lrp-inference", 0, 2),
        ("control", 1, 2),
        ("lrp-inference", 1, 2),
    ]
    assert data["budgets"]["before"] == "transformer, as it was given"
    (pair,) = data["gains"]
    assert pair == "lrp-inference - control"
    for run in ("control-0", "lrp-inference-1"):
        recipe = load_recipe(tmp_path / "runs" / run / "recipe.yaml")
        assert recipe.start_from == str(start)
        # So low a rate hardly moves weights: they are those it began with.
        before, after = (
            load_file(find_checkpoint(path) / "model.safetensors")
            for path in (start, tmp_path / "runs" / run)
        )
        for key, value in before.items():
            assert (after[key] - value).abs().max() < 1e-4
