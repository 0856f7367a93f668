"""Paper 0, figure 4: CIDEr and the mean mask by λ, the price of masking (eq. 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.errors import ConfigError
from sightline.experiments.claims import (
    FEWEST_SEEDS,
    Answer,
    Claim,
    not_kept,
    tell,
    untested,
)
from sightline.experiments.estimate import (
    Estimate,
    error_bars,
    estimate_seeds,
    rows_to_json,
    to_markdown,
)
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.masks import outside
from sightline.experiments.training_tasks import (
    TrainingOptions,
    arms_of,
    gain,
    of_arm,
    score_of,
)

OF_PAPER = "lambda-0.035"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """The paper's gate, by λ. λ is of a sum over regions, so the best one depends on the grid."""

    recipe: str = "scenes/fusion"
    penalties: tuple[float, ...] = (0.1, 0.035, 0.01, 0.003, 0.001)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.penalties)) < 3:
            raise ConfigError("penalties: a sweep needs at least 3 of them")


def arms(options: Options) -> list[Arm]:
    return [
        Arm(f"lambda-{value:g}", options.recipe, (f"objective.penalty={value}",), options.seeds)
        for value in sorted(options.penalties, reverse=True)
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows: list[dict[str, Any]] = []
    names = arms_of(records)
    for arm in names:
        masks = [record["terms"]["mask"] for record in of_arm(records, arm)]
        row = {"arm": arm, "lambda": float(arm.removeprefix("lambda-"))}
        row["mask"] = estimate_seeds(masks)
        row["dev"] = score_of(records, arm, "dev", "CIDEr-D")
        row["test"] = score_of(records, arm, "test", "CIDEr-D")
        rows.append(row)
    peak = max(rows[1:-1], key=lambda row: row["dev"].mean)
    over_ends = {
        end: gain(records, peak["arm"], end, "test", "CIDEr-D").to_json()
        for end in (names[0], names[-1])
    }
    over_others = {
        other: gain(records, OF_PAPER, other, "test", "CIDEr-D").to_json()
        for other in names
        if OF_PAPER in names and other != OF_PAPER
    }
    table = to_markdown(
        ["λ", "mean mask", "dev CIDEr-D", "test CIDEr-D", "seeds"],
        [
            [
                f"{row['lambda']:g}",
                row["mask"].show(digits=2),
                row["dev"].show(100),
                row["test"].show(100),
                str(row["dev"].count),
            ]
            for row in rows
        ],
    )
    data = {
        "rows": rows_to_json(rows),
        "peak": {"arm": peak["arm"], "over_ends": over_ends},
        "over_others": over_others,
    }
    return Findings(table, _draw(rows), data)


def _draw(rows: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    x = [row["lambda"] for row in rows]
    for panel, column, factor, colour, label in (
        (left, "dev", 100, "C0", "CIDEr-D (dev)"),
        (right, "mask", 1, "C1", "mean mask"),
    ):
        values = [row[column] for row in rows]
        y = [factor * value.mean for value in values]
        error = error_bars(values, factor)
        panel.errorbar(x, y, error, marker="o", color=colour, capsize=3, elinewidth=0.8)
        panel.set_ylabel(label, color=colour)
    left.set_xscale("log")
    left.set_xlabel("λ, the price of masking")
    return figure


def rises_and_falls(data: dict[str, Any]) -> Answer:
    """Whether the best λ between the ends, chosen on dev, is better than both of them on test."""
    if few := _few_seeds(data):
        return few
    if "peak" not in data:
        return not_kept("the best λ between the ends")
    peak = data["peak"]
    return _is_above(data, peak["arm"], peak["over_ends"])


def papers_is_best(data: dict[str, Any]) -> Answer:
    """Whether the paper's λ is better than every other."""
    if OF_PAPER not in [row["arm"] for row in data["rows"]]:
        return untested(f"{_name(OF_PAPER)} was not among those tried.")
    if few := _few_seeds(data):
        return few
    if "over_others" not in data:
        return not_kept("what λ = 0.035 is above the others")
    return _is_above(data, OF_PAPER, data["over_others"])


def _few_seeds(data: dict[str, Any]) -> Answer | None:
    seeds = data["rows"][0]["dev"]["count"]
    if seeds >= FEWEST_SEEDS:
        return None
    means = ", ".join(
        f"{100 * row['dev']['mean']:.0f} at λ = {row['lambda']:g}" for row in data["rows"]
    )
    return untested(f"{seeds} seeds are too few to tell. CIDEr-D on dev: {means}.")


def _is_above(data: dict[str, Any], arm: str, over: dict[str, Any]) -> Answer:
    """Where alignment is at work at a λ, whether it is better than these others."""
    masks = {_name(row["arm"]): row["mask"]["mean"] for row in data["rows"]}
    if reason := outside(masks, [_name(arm)]):
        return untested(reason)
    gains = {other: Estimate.from_json(values) for other, values in over.items()}
    words = ", ".join(
        f"{of_other.show(100, sign='+')} against {_name(other)}"
        for other, of_other in gains.items()
    )
    return tell([*gains.values()], f"CIDEr-D on test at {_name(arm)}, paired by seed: {words}.")


def _name(arm: str) -> str:
    return arm.replace("lambda-", "λ = ")


EXPERIMENT = Experiment(
    "paper0-figure4",
    "How much masking is best: CIDEr and the mean mask by λ?",
    Options,
    no_tasks,
    conclude,
    (
        Claim(
            "figure 4", "As masks perturb more, CIDEr first rises and then falls.", rises_and_falls
        ),
        Claim("figure 4", "λ = 0.035 is best.", papers_is_best),
    ),
    arms,
)
