"""A table of training runs, made from their folders, or from what was recorded of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from safetensors import safe_open

from sightline.checkpoint import find_checkpoint, load_config, read_pointers
from sightline.config import from_dict, to_dict
from sightline.errors import ConfigError
from sightline.evaluation.history import read_history
from sightline.evaluation.published import PUBLISHED
from sightline.parsing import read_json
from sightline.printing import printable
from sightline.recipe import Recipe, load_recipe_of

SCORES = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr-D")


@dataclass(frozen=True)
class Result:
    """A run, or one that a later phase went on from, or what was packed of some."""

    run: str
    model: str
    objective: str  # of every phase up to here
    encoder: str  # with its size, and from where on it was trained
    parameters: int
    epochs: int
    seconds: int  # of training steps, up to this checkpoint
    dev: dict[str, float]
    test: dict[str, float]  # empty where `sightline evaluate` was not run
    bad_endings: float | None = None  # share of the test captions that end in "with a" or the like
    settings: dict[str, Any] = field(default_factory=dict)  # of every phase up to here


def results_of(run: Path) -> list[Result]:
    """A row for what each phase ended with, and one for the best so far of one under way.

    What `sightline pack` made, which is no run but a checkpoint, has a row, too. A file holds rows
    that `sightline results --json` printed, of runs that may be gone.
    """
    if not run.exists():
        raise ConfigError(f"{run} does not exist: give a training run, or a file of rows")
    if run.is_file():
        return _recorded_results(run)
    if (run / "config.json").is_file():
        return [_packed_result(run)]
    if not (run / "recipe.yaml").is_file():
        raise ConfigError(f"{run}: neither a training run nor a checkpoint; give one of these")
    recipe = load_recipe_of(run)
    pointers = read_pointers(run)
    ended = [name for name in pointers if name.startswith("stage-")]
    rows = [_result(run, replace(recipe, then=recipe.then[:n]), n + 1) for n in range(len(ended))]
    if find_checkpoint(run).name in (pointers[name] for name in ended):
        return rows
    return [*rows, _result(run, replace(recipe, then=recipe.then[: len(ended)]), None)]


def _recorded_results(path: Path) -> list[Result]:
    records = read_json(path)
    if not isinstance(records, list):
        raise ConfigError(f"{path}: must be a list of rows, as printed by sightline results --json")
    return [from_dict(Result, record, f"{path}, row {n}") for n, record in enumerate(records, 1)]


def _result(run: Path, recipe: Recipe, phase: int | None) -> Result:
    """A row of the run so far: `recipe` is of the phases up to there."""
    folder = find_checkpoint(run, phase)
    config = load_config(folder)
    training = {"epoch": 0, "seconds": 0, "step": 0, **(config.get("training") or {})}
    test = _evaluation(run, f"test-stage-{phase}")
    if not test and folder == find_checkpoint(run):
        test = _evaluation(run, "test")
    return Result(
        run.name,
        config["model"]["name"],
        ", then ".join(part.objective["name"] for part in recipe.phases()),
        _encoder(config),
        _parameters(folder / "model.safetensors"),
        training["epoch"],
        training["seconds"],
        _dev_scores(run, training["step"]),
        test.get("scores", {}),
        test.get("bad_endings"),
        _flat(to_dict(recipe)),
    )


def _packed_result(folder: Path) -> Result:
    """Its training time is that of all it is a mean of: what they share counts for each."""
    config = load_config(folder)
    training = config.get("training") or {}
    parts: list[dict[str, Any]] = [
        {"epoch": 0, "seconds": 0, **(part or {})} for part in training.get("mean_of", [training])
    ]
    different = {json.dumps(part): part for part in parts}.values()  # one may weigh double
    test = _evaluation(folder, "test")
    return Result(
        folder.name,
        config["model"]["name"],
        f"mean of {len(different)}" if len(different) > 1 else "packed",
        _encoder(config),
        _parameters(folder / "model.safetensors"),
        max(part["epoch"] for part in different),
        sum(part["seconds"] for part in different),
        _evaluation(folder, "dev").get("scores", {}),
        test.get("scores", {}),
        test.get("bad_endings"),
    )


def _encoder(config: dict[str, Any]) -> str:
    encoder, tuned = config["encoder"], config.get("tuned")
    size = f" {encoder['size']} px" if "size" in encoder else ""
    return f"{encoder['name']}{size}" + (f" from {tuned['from']}" if tuned else "")


def _evaluation(run: Path, of: str) -> dict[str, Any]:
    """What `sightline evaluate` wrote, but undefined scores; empty where it was not run."""
    path = run / f"evaluation-{of}" / "scores.json"
    if not path.exists():
        return {}
    read = from_dict(_Evaluation, read_json(path), str(path), strict=False, joint=": ")
    scores = {name: score for name, score in read.scores.items() if score is not None}
    return {"scores": scores, "bad_endings": read.bad_endings}


@dataclass(frozen=True)
class _Evaluation:
    scores: dict[str, float | None]
    bad_endings: float | None = None


def _flat(values: Any, path: str = "") -> dict[str, Any]:
    """As overrides name them, but for where things lie on somebody's disk.

    >>> _flat({"data": {"path": "x", "mirror": True}, "then": [{"epochs": 3}]})
    {'data.mirror': True, 'then.0.epochs': 3}
    """
    if not isinstance(values, dict | list):
        return {} if path in ("data.path", "data.images", "encoder.cache") else {path: values}
    inner = values.items() if isinstance(values, dict) else enumerate(values)
    flat: dict[str, Any] = {}
    for key, value in inner:
        flat |= _flat(value, f"{path}.{key}" if path else str(key))
    return flat


def _parameters(path: Path) -> int:
    with safe_open(path, "pt") as weights:
        return sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118


def _dev_scores(run: Path, step: int) -> dict[str, float]:
    """Of the weights that the checkpoint of a step holds: after a roll-back, an earlier step's."""
    history = read_history(run)
    step = next((line.back_to for line in history if line.step == step and line.back_to), step)
    return next((line.dev for line in history if line.step == step and line.dev), {})


def to_markdown(rows: Sequence[Result], settings: bool = False) -> str:
    """The table, scores in percent as papers print them; with what is set otherwise than above.

    Time is not in it: it tells runs apart by what else their machine did.

    >>> row = Result("r", "grid_td", "aligned", "vgg16", 8_100_000, 3, 600, {}, {"BLEU-4": 0.2})
    >>> print(to_markdown([row]).splitlines()[2])
    | r | grid_td | aligned | vgg16 | 8.1 M | 3 | 20.0 |
    """
    columns = _columns_of(rows)
    header = ["run", "model", "trained by", "encoder", "parameters", "epochs"]
    return _table(
        [*header, *columns, *["settings"] * settings],
        [
            [
                row.run,
                row.model,
                row.objective,
                row.encoder,
                f"{row.parameters / 1e6:.1f} M",
                str(row.epochs),
                *(_percent(score(row)) for score in columns.values()),
                *[_differences(row, rows)] * settings,
            ]
            for row in rows
        ],
    )


def _differences(row: Result, rows: Sequence[Result]) -> str:
    """From the first of its model and of as many phases, which it is to be held against.

    >>> made = [("m", "a", 0), ("m", "a, then b", 1), ("m", "a, then b", 2), ("n", "a", 3)]
    >>> rows = [Result("r", *how, "e", 8, 3, 6, {}, {}, None, {"seed": n}) for *how, n in made]
    >>> [_differences(row, rows) for row in rows]
    ['-', '-', 'seed=2', '-']
    """

    def kind(of: Result) -> tuple[str, int]:
        return of.model, of.objective.count(", then ")

    first = next(result for result in rows if kind(result) == kind(row))
    changed = {
        key: value
        for key, value in row.settings.items()
        if value is not None and value != first.settings.get(key)
    }
    return ", ".join(f"{key}={value}" for key, value in changed.items()) or "-"


def means_to_markdown(rows: Sequence[Result]) -> str:
    """Means and standard deviations over runs that differ in their seeds alone; empty without any.

    >>> scores = ({"BLEU-4": 0.2}, {"BLEU-4": 0.22})
    >>> rows = [
    ...     Result(f"gate-{n}", *"mts", 8, 3, 6, {}, scores[n], settings={"seed": n})
    ...     for n in range(2)
    ... ]
    >>> print(means_to_markdown(rows).splitlines()[2])
    | gate-0, gate-1 | 21.0 ± 1.4 |
    """
    columns = _columns_of(rows)
    alike: dict[str, list[Result]] = {}
    for row in rows:
        alike.setdefault(json.dumps(row.settings | {"seed": None}), []).append(row)
    lines = [
        [
            ", ".join(row.run for row in repeats),
            *(_spread([score(row) for row in repeats]) for score in columns.values()),
        ]
        for repeats in alike.values()
        if len({row.settings.get("seed") for row in repeats}) > 1
    ]
    return _table(["runs", *columns], lines) if lines else ""


def published_to_markdown(dataset: str) -> str:
    """What papers and others print for the test split of a dataset, and how it was measured."""
    return _table(
        ["published", *SCORES, "how it was measured"],
        [
            [row.system, *(str(row.scores.get(name, "-")) for name in SCORES), row.protocol]
            for row in PUBLISHED[dataset]
        ],
    )


def _score(of: str, name: str) -> Callable[[Result], float | None]:
    return lambda row: getattr(row, of).get(name)


_COLUMNS: dict[str, Callable[[Result], float | None]] = {
    "dev BLEU-4": _score("dev", "BLEU-4"),
    "dev CIDEr-D": _score("dev", "CIDEr-D"),
    **{name: _score("test", name) for name in SCORES},
    "bad endings": lambda row: row.bad_endings,
}


def _columns_of(rows: Sequence[Result]) -> dict[str, Callable[[Result], float | None]]:
    """Those in which any row has a number."""
    return {
        name: score
        for name, score in _COLUMNS.items()
        if any(score(row) is not None for row in rows)
    }


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "".join("| " + " | ".join(map(printable, cells)) + " |\n" for cells in rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _spread(values: Sequence[float | None]) -> str:
    known = [100 * value for value in values if value is not None]
    return f"{mean(known):.1f} ± {stdev(known):.1f}" if len(known) == len(values) else "-"
