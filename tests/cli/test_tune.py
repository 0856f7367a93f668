"""`sightline tune`: what it prints, leaves behind and refuses."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sightline.cli.tune import command
from sightline.errors import MissingExtraError, SightlineError
from sightline.recipe import load_recipe
from sightline.training import tuning

RANGE = ("--range", "optimizer.learning_rate=1e-4..1e-2 log")


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    recipes: list[Any] = []

    def train(recipe: Any, run: Path, *, show_progress: bool, on_evaluation: Any) -> None:
        recipes.append(recipe)
        on_evaluation(1, recipe.optimizer.learning_rate)

    monkeypatch.setattr(tuning, "train", train)
    return recipes


def test_the_best_recipe_is_left_beside_a_table_and_a_figure(
    tiny_recipe: Path, tmp_path: Path, trained: list[Any]
) -> None:
    folder = tmp_path / "search"
    result = invoke(tiny_recipe, "epochs=3", *RANGE, "--trials", 3, "-o", folder)
    assert result.exit_code == 0, result.output
    assert len(trained) == 3
    assert result.stdout.startswith("| trial | dev BLEU-4 | optimizer.learning_rate | ended |")
    assert f"The best recipe: {folder / 'best.yaml'}" in result.stdout
    best = load_recipe(folder / "best.yaml")
    assert best in trained
    rates = [recipe.optimizer.learning_rate for recipe in trained]
    assert best.optimizer.learning_rate == max(rates)
    assert best.epochs == 3
    for name in ("table.md", "figure.png", "figure.svg", "study.jsonl"):
        assert (folder / name).stat().st_size > 50


def test_what_cannot_be_searched_is_one_clear_line(
    tiny_recipe: Path, tmp_path: Path, trained: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, says in (
        ((), "give at least one range"),
        (("--range", "epochs=3"), "must be KEY=LOW..HIGH"),
        (("--range", "epoch=1..3"), "did you mean 'epochs'"),
    ):
        error = invoke(tiny_recipe, *arguments, "-o", tmp_path / "s").exception
        assert isinstance(error, SightlineError)
        assert says in str(error)
        assert "\n" not in str(error)
    assert trained == []
    monkeypatch.setitem(__import__("sightline.extras").extras.EXTRAS, "tune", ("absent_module",))
    error = invoke(tiny_recipe, *RANGE, "-o", tmp_path / "s").exception
    assert isinstance(error, MissingExtraError)
    assert "pip install 'sightline[tune]'" in str(error)
