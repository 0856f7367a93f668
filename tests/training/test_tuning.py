"""A search: what is drawn, what is stopped early, and that nothing is done twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import ConfigError, TrainingError
from sightline.training import tuning
from sightline.training.tuning import (
    Attempt,
    Range,
    best_of,
    recipe_of,
    table,
    tune,
    write_search,
)

RATE = Range.parse("optimizer.learning_rate=1e-4..1e-2 log")
WIDTH = Range.parse("model.state_width=[8, 16]")


class Training:
    """In the place of training: dev scores of each epoch by the learning rate alone."""

    def __init__(self, fail: int | None = None) -> None:
        self.rates: list[float] = []
        self.runs: list[str] = []
        self.fail = fail

    def __call__(self, recipe: Any, run: Path, *, show_progress: bool, on_evaluation: Any) -> None:
        self.runs.append(run.name)
        self.rates.append(recipe.optimizer.learning_rate)
        for epoch in range(1, 5):
            if len(self.runs) == self.fail and epoch == 3:
                raise KeyboardInterrupt
            on_evaluation(epoch, recipe.optimizer.learning_rate * epoch * 10)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    made = Training()
    monkeypatch.setattr(tuning, "train", made)
    return made


def test_settings_are_drawn_within_their_ranges_and_the_best_is_found(
    tiny_recipe: Path, tmp_path: Path, training: Training
) -> None:
    attempts = tune(str(tiny_recipe), [RATE, WIDTH], tmp_path / "s", trials=8, startup=3)
    assert len(attempts) == len(training.runs) == 8
    assert all(1e-4 <= rate <= 1e-2 for rate in training.rates)
    assert len(set(training.rates)) == 8
    assert {attempt.settings["model.state_width"] for attempt in attempts} == {8, 16}
    best = best_of(attempts)
    assert best.settings["optimizer.learning_rate"] == max(training.rates)
    recipe = recipe_of(str(tiny_recipe), ["epochs=9"], best)
    assert recipe.optimizer.learning_rate == max(training.rates)
    assert recipe.model_options["state_width"] == best.settings["model.state_width"]
    assert recipe.epochs == 9


def test_a_trial_below_the_median_of_earlier_ones_is_stopped(
    tiny_recipe: Path, tmp_path: Path, training: Training
) -> None:
    attempts = tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=9, startup=3)
    assert not any(attempt.pruned for attempt in attempts[:3])
    pruned = [attempt for attempt in attempts if attempt.pruned]
    assert pruned
    for attempt in pruned:
        (epoch, score), *_ = attempt.scores
        earlier = sorted(a.scores[0][1] for a in attempts[: attempt.number])
        assert epoch == 1
        assert score < earlier[len(earlier) // 2]
        assert len(attempt.scores) < 4
    text = table(attempts, "BLEU-4")
    assert f"| {pruned[0].number} |" in text
    assert "stopped at epoch 1" in text
    assert text.splitlines()[2].startswith(f"| {best_of(attempts).number} |")


def test_a_search_that_was_killed_goes_on_with_the_same_trial(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Training()
    monkeypatch.setattr(tuning, "train", whole)
    expected = tune(str(tiny_recipe), [RATE], tmp_path / "whole", trials=4, startup=9)
    first = Training(fail=3)
    monkeypatch.setattr(tuning, "train", first)
    with pytest.raises(KeyboardInterrupt):
        tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=4, startup=9)
    second = Training()
    monkeypatch.setattr(tuning, "train", second)
    attempts = tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=4, startup=9)
    assert first.runs == ["trial-0000", "trial-0001", "trial-0002"]
    assert second.runs == ["trial-0002", "trial-0003"]
    assert second.rates[0] == first.rates[2]
    assert attempts == expected
    third = Training()
    monkeypatch.setattr(tuning, "train", third)
    assert tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=4) == attempts
    assert third.runs == []
    assert len(tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=5, startup=9)) == 5
    assert third.runs == ["trial-0004"]
    assert len({*whole.rates, *third.rates}) == 5  # one that is made longer draws new settings


def test_a_trial_that_cannot_be_trained_is_left_behind(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def train(recipe: Any, run: Path, *, show_progress: bool, on_evaluation: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise TrainingError("the term 'nll' is nan")
        on_evaluation(1, 0.5)

    monkeypatch.setattr(tuning, "train", train)
    attempts = tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=2)
    assert [attempt.number for attempt in attempts] == [1, 2]


def test_a_folder_belongs_to_one_search(
    tiny_recipe: Path, tmp_path: Path, training: Training
) -> None:
    tune(str(tiny_recipe), [RATE], tmp_path / "s", trials=1)
    with pytest.raises(ConfigError, match="holds a search of another recipe or other ranges"):
        tune(str(tiny_recipe), [WIDTH], tmp_path / "s", trials=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate", "must be KEY=LOW..HIGH or KEY="),
        ("rate=3", "must be KEY=LOW..HIGH or KEY="),
        ("rate=[]", "must be KEY=LOW..HIGH or KEY="),
        ("rate=a..b", "bounds of a range must be numbers"),
        ("rate=2..1", "the first bound must be below the second"),
        ("rate=0..1 log", "logarithmic range must be above 0"),
    ],
)
def test_what_is_no_range(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Range.parse(text)


def test_a_wrong_key_or_value_shows_before_anything_is_trained(
    tiny_recipe: Path, tmp_path: Path, training: Training
) -> None:
    for text, says in (
        ("optimizer.rate=1..2", "optimizer"),
        ("dev.beam=[1, many]", "dev.beam: must be a whole number"),
        ("epochs=0..3", "epochs: must be at least 1"),
    ):
        with pytest.raises(ConfigError, match=says):
            tune(str(tiny_recipe), [Range.parse(text)], tmp_path / "s", trials=1)
    with pytest.raises(ConfigError, match="give at least one range"):
        tune(str(tiny_recipe), [], tmp_path / "s")
    with pytest.raises(ConfigError, match="a search trains in one process"):
        tune(str(tiny_recipe), [RATE], tmp_path / "s", overrides=["devices=2"])
    assert training.runs == []
    assert not (tmp_path / "s").exists()


def test_a_search_trains_and_leaves_a_table_a_figure_and_the_best_recipe(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    overrides = ["epochs=1", "dev.every=1", "logger=csv"]
    attempts = tune(str(tiny_recipe), [RATE], folder, overrides=overrides, trials=2)
    assert [len(attempt.scores) for attempt in attempts] == [1, 1]
    for attempt in attempts:
        history = (folder / f"trial-{attempt.number:04d}" / "history.jsonl").read_text()
        logged = [json.loads(line) for line in history.splitlines()]
        assert attempt.scores[0][1] == next(r["dev"]["BLEU-4"] for r in logged if "dev" in r)
    write_search(folder, attempts, [RATE], "BLEU-4", "epochs: 1\n")
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "figure.svg").read_text()
    assert "| 0 |" in (folder / "table.md").read_text()
    assert (folder / "best.yaml").read_text() == "epochs: 1\n"


def test_the_best_of_nothing_is_an_error() -> None:
    with pytest.raises(TrainingError, match="no trial has been evaluated yet"):
        best_of([])
    same = Attempt(0, {}, ((1, 0.5),), 0.5, False), Attempt(1, {}, ((1, 0.5),), 0.5, False)
    assert best_of(same).number == 0
