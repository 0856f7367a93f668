"""A table of training runs, made from their folders alone."""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from safetensors import safe_open

from sightline.checkpoint import find_checkpoint, load_config, read_pointers
from sightline.training.data import load_recipe_of

SCORES = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr-D")


@dataclass(frozen=True)
class Result:
    """A run, or one that a later stage went on from."""

    run: str
    model: str
    objective: str  # of every stage up to here
    encoder: str  # and from where on it was trained
    parameters: int
    epochs: int
    seconds: int  # of training steps, up to this checkpoint
    dev: dict[str, float]
    test: dict[str, float]  # empty where `sightline evaluate` was not run
    bad_endings: float | None = None  # share of the test captions that end in "with a" or the like


def results_of(run: Path) -> list[Result]:
    """A row for what each stage ended with, and one for the best checkpoint."""
    stages = [stage.objective["name"] for stage in load_recipe_of(run).stages()]
    ended = sum(name.startswith("stage-") for name in read_pointers(run))
    rows = [_result(run, stages[: n + 1], n + 1) for n in range(ended)]
    return [*rows, _result(run, stages[: ended + 1], None)]


def _result(run: Path, objectives: list[str], stage: int | None) -> Result:
    folder = find_checkpoint(run, stage)
    config = load_config(folder)
    training: dict[str, Any] = config["training"]
    tuned = config.get("tuned")
    scores = run / ("evaluation-test" + (f"-stage-{stage}" if stage else "")) / "scores.json"
    test = json.loads(scores.read_text("utf-8")) if scores.exists() else {}
    return Result(
        run.name,
        config["model"]["name"],
        ", then ".join(objectives),
        config["encoder"]["name"] + (f" from {tuned['from']}" if tuned else ""),
        _parameters(folder / "model.safetensors"),
        training["epoch"],
        training["seconds"],
        _dev_scores(run, training["step"]),
        test.get("scores", {}),
        test.get("bad_endings"),
    )


def _parameters(path: Path) -> int:
    with safe_open(path, "pt") as weights:
        return sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118


def _dev_scores(run: Path, step: int) -> dict[str, float]:
    for line in (run / "history.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["step"] == step and "dev" in record:
            scores: dict[str, float] = record["dev"]
            return scores
    return {}


def to_markdown(rows: list[Result]) -> str:
    """The table, scores in percent as papers print them.

    >>> row = Result("r", "grid_td", "aligned", "vgg16", 8_100_000, 3, 600, {}, {"BLEU-4": 0.2})
    >>> print(to_markdown([row]).splitlines()[2])
    | r | grid_td | aligned | vgg16 | 8.1 M | 3 | 10 | - | - | - | - | - | 20.0 | - | - | - | - |
    """
    shown = ("BLEU-4", "CIDEr-D")
    header = ["run", "model", "trained by", "encoder", "parameters", "epochs", "minutes"]
    header += [f"dev {name}" for name in shown] + [*SCORES, "bad endings"]
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    for row in rows:
        cells = [row.run, row.model, row.objective, row.encoder]
        cells += [f"{row.parameters / 1e6:.1f} M", str(row.epochs), f"{row.seconds / 60:.0f}"]
        cells += [_percent(row.dev.get(name)) for name in shown]
        cells += [_percent(row.test.get(name)) for name in SCORES]
        cells.append(_percent(row.bad_endings))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
