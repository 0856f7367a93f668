"""What a run logs, by every logger that is installed; the loop is told nothing of which it is."""

import csv
import json
from pathlib import Path

import pytest

from sightline.errors import MissingExtraError
from sightline.extras import EXTRAS, is_installed
from sightline.recipe import load_recipe
from sightline.training.loggers import LOGGERS, CsvLogger, numbers
from sightline.training.loop import train


def history(run: Path) -> dict[tuple[int, str], float]:
    lines = (run / "history.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {(record["step"], name): v for record in records for name, v in numbers(record).items()}


def test_csv_has_the_history_and_the_captions(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(load_recipe(tiny_recipe, ("logger=csv", "epochs=2")), run)
    with (run / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    logged = {
        (int(row["step"]), row["name"]): float(row["value"])
        for row in rows
        if not row["name"].startswith("caption/")
    }
    assert logged == pytest.approx(history(run))
    assert len({row["name"] for row in rows if row["name"].startswith("caption/")}) == 4
    assert not (run / "tensorboard").exists()


def test_a_resumed_csv_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    log = CsvLogger(tmp_path, 0)
    for step in (3, 6, 9):
        log.scalars({"step": step, "epoch": 0, "loss": 1.0})
    resumed = CsvLogger(tmp_path, 6)
    resumed.scalars({"step": 9, "epoch": 0, "loss": 2.0})
    assert (tmp_path / "log.csv").read_text("utf-8").splitlines() == [
        "step,name,value",
        "3,train/loss,1.0",
        "6,train/loss,1.0",
        "9,train/loss,2.0",
    ]


@pytest.mark.process
def test_mlflow_in_a_local_folder_has_the_history_and_goes_on_with_its_run(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run = tmp_path / "run"
    train(load_recipe(tiny_recipe, ("logger=mlflow", "epochs=2")), run)
    client = MlflowClient(tracking_uri=(run / "mlflow").as_uri())
    (kept,) = client.search_runs([client.get_experiment_by_name("sightline").experiment_id])
    for name in {name for _, name in history(run)}:
        logged = {m.step: m.value for m in client.get_metric_history(kept.info.run_id, name)}
        assert logged == pytest.approx({s: v for (s, n), v in history(run).items() if n == name})
    assert len(client.list_artifacts(kept.info.run_id, "captions")) == 4
    LOGGERS["mlflow"](run, 10).scalars({"step": 99, "epoch": 9, "loss": 0.5})
    assert client.get_metric_history(kept.info.run_id, "train/loss")[-1].step == 99


@pytest.mark.process
@pytest.mark.skipif(not is_installed("wandb"), reason="wandb is not installed")
def test_wandb_offline_writes_into_the_run(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "run"
    train(load_recipe(tiny_recipe, ("logger=wandb", "epochs=1")), run)
    assert list((run / "wandb").glob("offline-run-*/*.wandb"))
    assert (run / "wandb-run.txt").read_text("utf-8")


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_logger_that_is_missing_is_refused_before_training(
    name: str, tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXTRAS, name, ("not_installed_here",))
    with pytest.raises(MissingExtraError, match=rf"logger: {name} needs .*sightline\[{name}\]"):
        train(load_recipe(tiny_recipe, (f"logger={name}",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
