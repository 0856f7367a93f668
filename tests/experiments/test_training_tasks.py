"""Experiments that train: every arm with every seed, interrupted or not, paired by seed."""

import json
from dataclasses import dataclass

import pytest
from matplotlib.figure import Figure

from sightline.errors import ConfigError, DataError
from sightline.experiments import captioners
from sightline.experiments.arms_table import compare_arms
from sightline.experiments.claims import Claim, decide
from sightline.experiments.experiment import Arm, Experiment, Findings, no_tasks
from sightline.experiments.runner import run_experiment
from sightline.experiments.training_tasks import (
    TrainingOptions,
    arms_of,
    gain,
    recipe_of,
    score_of,
    training_tasks,
)
from sightline.models.registry import MODELS
from sightline.training.recipe_check import check

TINY = (
    "data={scenes: {train: 8, dev: 4, test: 4, size: 64}, min_count: 1}",
    "encoder.size=64",
    "model={name: soft_attention, region_width: 8, word_width: 8, state_width: 8, "
    "attention_width: 8}",
    "epochs=1",
    "logger=csv",
)


@dataclass(frozen=True)
class Options(TrainingOptions):
    """As all."""

    seeds: int = 1
    overrides: tuple[str, ...] = TINY


def arms(options):
    fast = Arm("fast", "scenes/soft_attention", ("optimizer.learning_rate=0.01",), options.seeds)
    return [fast, Arm("further", "scenes/soft_attention", (), options.seeds, after="fast")]


def conclude(records, options):
    better = gain(records, "further", "fast", "test", "BLEU-1")
    return Findings("| table |\n", Figure(), {"arms": arms_of(records), "gain": better.to_json()})


CLAIM = Claim("table 9", "Further is better.", lambda data: decide(data["gain"]["mean"] > 9, "No."))
EXPERIMENT = Experiment("x", "Does it?", Options, no_tasks, conclude, (CLAIM,), arms)


def test_runs_are_trained_evaluated_kept_and_not_trained_again(tmp_path, monkeypatch):
    findings = run_experiment(
        EXPERIMENT, (), Options(), tmp_path, locations=[f"encoder.cache={tmp_path / 'cache'}"]
    )
    assert findings.data["arms"] == ["fast", "further"]
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["budgets"]["fast"] == "soft_attention on 8 medium scenes, 1 epoch of cross_entropy"
    assert data["data"] == "medium scenes"
    page = (tmp_path / "table.md").read_text()
    assert "- table 9: “Further is better.” *not reproduced*. No.\n" in page
    assert "Training: fast: soft_attention on 8 medium scenes" in page
    assert str(tmp_path) not in page + json.dumps(data)  # where things were is nobody's business
    records = [json.loads(line) for line in (tmp_path / "measurements.jsonl").open()][1:]
    for record in (line["record"] for line in records):
        assert 0 <= record["test"]["BLEU-1"] <= 1
        assert record["dev"].keys() == record["test"].keys()
        assert record["epochs"] == 1
        (point,) = record["curve"]
        assert point["step"] == 1
        assert point["BLEU-4"] == pytest.approx(record["dev"]["BLEU-4"], abs=0.2)  # other beams
        assert 0 < record["step_seconds"] < 60
    recipe = (tmp_path / "runs" / "further-0" / "recipe.yaml").read_text()
    assert f"start_from: {tmp_path / 'runs' / 'fast-0'}" in recipe
    monkeypatch.setattr("sightline.training.loop.train", None)
    assert run_experiment(EXPERIMENT, (), Options(), tmp_path).data == findings.data


def test_the_arms_of_a_seed_come_before_the_next_seed(tmp_path):
    two = [
        Arm("many", "scenes/soft_attention", (), 3),
        Arm("few", "scenes/soft_attention", (), 1),
    ]
    keys = [task.key for task in training_tasks(two, Options(), tmp_path)]
    assert keys == ["many/0", "few/0", "many/1", "many/2"]


def test_overrides_do_not_undo_what_makes_an_arm(tmp_path):
    arm = Arm("x", "scenes/soft_attention", ("optimizer.learning_rate=0.01",))
    options = Options(overrides=("optimizer.learning_rate=0.5", "epochs=7"))
    recipe = recipe_of(arm, 0, options, tmp_path)
    assert (recipe.optimizer.learning_rate, recipe.epochs) == (0.01, 7)


def test_the_table_says_how_long_each_arm_was_trained():
    def record(arm, seed, steps):
        kept = {"arm": arm, "seed": seed, "dev": {"A": 0.1}, "test": {"A": 0.1}, "terms": {}}
        return kept if steps is None else {**kept, "steps": steps}

    pairs = [("a", 0, 1200), ("a", 1, 1200), ("b", 0, 900), ("b", 1, 1200), ("old", 0, None)]
    findings = compare_arms([record(*each) for each in pairs], [("b", "a")])
    header, _, *rows = (line.split(" | ") for line in findings.table.splitlines())
    assert header[-1] == "steps |"
    assert [row[-1] for row in rows] == ["1,200 |", "900 to 1,200 |", "- |", "- |"]
    assert [run.get("steps") for run in findings.data["runs"]] == [1200, 1200, 900, 1200, None]


def test_scores_are_paired_by_seed():
    records = [
        {"arm": arm, "seed": seed, "test": {"CIDEr-D": value}}
        for arm, values in (("a", [3.0, 5.0, 9.0]), ("b", [2.0, 4.0]))
        for seed, value in enumerate(values)
    ]
    difference = gain(records, "a", "b", "test", "CIDEr-D")
    assert (difference.mean, difference.low, difference.high) == (1, 1, 1)
    assert difference.count == 2
    assert not score_of(records, "b", "test", "CIDEr-D").above(0)  # two seeds say little
    assert score_of(records[:1], "a", "test", "CIDEr-D").show() == "3.0"  # and one has no interval


def test_captioners_are_trained_alike_and_compared_with_the_first(tmp_path):
    options = captioners.Options(seeds=1)
    recipes = {arm.name: recipe_of(arm, 0, options, tmp_path) for arm in captioners.arms(options)}
    assert set(recipes) == set(MODELS.builtin)  # all that there are
    budgets = {(r.data, r.encoder, r.batch, r.epochs, r.steps) for r in recipes.values()}
    assert len({str(budget) for budget in budgets}) == 1
    for recipe in recipes.values():
        check(recipe)
    for recipes in (("scenes/grid_td",), ("scenes/grid_td", "flickr8k/grid_td")):
        with pytest.raises(ConfigError, match="recipes: give at least two, of different names"):
            captioners.Options(recipes=recipes)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(ConfigError, match="seeds"):
        TrainingOptions(seeds=0)
    with pytest.raises(DataError, match="ciderd"):
        TrainingOptions(metrics=("ciderd",))
    with pytest.raises(ConfigError, match="clipscore needs a CLIP model"):  # not hours later
        TrainingOptions(metrics=("bleu", "clipscore"))
