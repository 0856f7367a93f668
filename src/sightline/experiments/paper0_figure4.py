"""Paper 0, figure 4: CIDEr and the mean mask by λ, the price of masking (eq. 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.errors import ConfigError
from sightline.experiments.claims import FEWEST_SEEDS, Answer, Claim, decide, untested
from sightline.experiments.estimate import (
    Estimate,
    error_bars,
    estimate_seeds,
    rows_to_json,
    to_markdown,
)
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import (
    TrainingOptions,
    arms_of,
    gain,
    of_arm,
    score_of,
)


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
    best = max(rows, key=lambda row: row["dev"].mean)
    ends = {
        end: gain(records, best["arm"], end, "test", "CIDEr-D").to_json()
        for end in (names[0], names[-1])
        if end != best["arm"]
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
    data = {"rows": rows_to_json(rows), "best": best["lambda"], "over_ends": ends}
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
    """Whether a λ between the ends is better than both of them, beyond chance."""
    gains = {end: Estimate.from_json(values) for end, values in data["over_ends"].items()}
    seeds = data["rows"][0]["dev"]["count"]
    if seeds < FEWEST_SEEDS:
        means = ", ".join(
            f"{100 * row['dev']['mean']:.0f} at λ = {row['lambda']:g}" for row in data["rows"]
        )
        return untested(f"{seeds} seeds are too few to tell. CIDEr-D on dev: {means}.")
    words = " and ".join(
        f"{of_end.show(100, sign='+')} against {end.replace('lambda-', 'λ = ')}"
        for end, of_end in gains.items()
    )
    return decide(
        len(gains) == 2 and all(of_end.above() for of_end in gains.values()),
        f"The best is λ = {data['best']:g}; its CIDEr-D on test is {words} ({seeds} seeds).",
    )


EXPERIMENT = Experiment(
    "paper0-figure4",
    "How much masking is best: CIDEr and the mean mask by λ?",
    Options,
    no_tasks,
    conclude,
    (
        Claim(
            "figure 4",
            "As masks perturb more, CIDEr first rises and then falls; λ = 0.035 is best.",
            rises_and_falls,
        ),
    ),
    arms,
)
