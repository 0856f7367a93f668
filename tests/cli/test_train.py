"""`sightline train` and `sightline models` as commands."""

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from sightline.cli.models import command as models
from sightline.cli.recipes import command as recipes
from sightline.cli.train import command as train
from sightline.models.registry import list_models
from sightline.recipe import load_recipe
from sightline.recipes import shipped_recipes


def test_print_config_prints_the_recipe_with_its_defaults_and_overrides() -> None:
    result = CliRunner().invoke(train, ["scenes/soft_attention", "epochs=3", "--print-config"])
    assert result.exit_code == 0
    printed = yaml.safe_load(result.output)
    assert printed["epochs"] == 3
    assert printed["schedule"]["minimum"] == 0.0  # a default
    assert printed["model"]["name"] == "soft_attention"


def test_recipes_lists_every_one_and_prints_one(tmp_path: Path) -> None:
    listed = CliRunner().invoke(recipes, [])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == [*shipped_recipes()]
    printed = CliRunner().invoke(recipes, ["scenes/grid_td"])
    copy = tmp_path / "mine.yaml"
    copy.write_text(printed.output)
    assert load_recipe(copy) == load_recipe("scenes/grid_td")


def test_models_lists_every_registered_one() -> None:
    result = CliRunner().invoke(models, ["--json"])
    rows = json.loads(result.output)
    assert [row["name"] for row in rows] == list_models()
    assert sum(row["bundled"] for row in rows) == 1
    assert all(row["parameters"] > 1e6 and row["paper"] for row in rows)
    table = CliRunner().invoke(models, [])
    assert all(name in table.output for name in list_models())
    assert "Bundled: a trained " in table.output
