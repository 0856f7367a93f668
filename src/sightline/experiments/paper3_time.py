"""Paper 3, sections 3 and 4: how long spatial self-attention trains until it captions as well.

Both captioners are trained one after the other by one process. The score that both reach is the
best of the one that stays behind; a run needs as many steps as its first dev evaluation that has
it, times the processor time of its steps. Encoding and evaluating are not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.errors import ConfigError
from sightline.experiments.claims import Answer, Claim, tell
from sightline.experiments.estimate import Estimate, estimate_seeds, rows_to_json, to_markdown
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions, of_arm

SPATIAL, SOFT = "spatial", "soft-attention"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """The recipes that are compared, and the dev score that both must reach."""

    recipe: str = "scenes/spatial_transformer"
    soft: str = "scenes/soft_attention"
    metric: str = "CIDEr-D"


def arms(options: Options) -> list[Arm]:
    return [
        Arm(name, recipe, ("dev.every=1",), options.seeds)
        for name, recipe in ((SPATIAL, options.recipe), (SOFT, options.soft))
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    pairs = list(zip(of_arm(records, SPATIAL), of_arm(records, SOFT), strict=True))
    runs = [race(*pair, options.metric) for pair in pairs]
    rows: list[dict[str, Any]] = []
    for arm in (SPATIAL, SOFT):
        row: dict[str, Any] = {"arm": arm}
        for what in ("best", "step_seconds", "steps", "seconds"):
            row[what] = estimate_seeds([run[arm][what] for run in runs])
        rows.append(row)
    ratio = estimate_seeds([run[SPATIAL]["seconds"] / run[SOFT]["seconds"] for run in runs])
    header = ["captioner", f"best {options.metric} on dev", "processor ms a step"]
    header += ["steps to the score of both", "seconds to it", "seeds"]
    cells = [
        [
            *(row["arm"], row["best"].show(100), row["step_seconds"].show(1000)),
            *(row["steps"].show(digits=0), row["seconds"].show(), str(len(runs))),
        ]
        for row in rows
    ]
    data = {"rows": rows_to_json(rows), "ratio": ratio.to_json(), "runs": runs}
    return Findings(to_markdown(header, cells), _draw(pairs, options.metric), data)


def race(spatial: Record, soft: Record, metric: str) -> dict[str, Any]:
    """What two runs of a seed needed for the score that both reached."""
    curves = {SPATIAL: spatial["curve"], SOFT: soft["curve"]}
    for curve in curves.values():
        if not curve or metric not in curve[0]:
            raise ConfigError(f"metric: dev evaluations have no score called '{metric}'")
    best = {arm: max(point[metric] for point in curve) for arm, curve in curves.items()}
    target = min(best.values())
    outcome: dict[str, Any] = {"seed": spatial["seed"], "target": target}
    for arm, record in ((SPATIAL, spatial), (SOFT, soft)):
        steps = next(point["step"] for point in curves[arm] if point[metric] >= target)
        outcome[arm] = {
            "best": best[arm],
            "step_seconds": record["step_seconds"],
            "steps": steps,
            "seconds": steps * record["step_seconds"],
        }
    return outcome


def _draw(pairs: Sequence[tuple[Record, Record]], metric: str) -> Any:
    """Dev scores over processor time, a line for each run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    panel = figure.subplots()
    for colour, (arm, side) in enumerate(((SPATIAL, 0), (SOFT, 1))):
        for number, pair in enumerate(pairs):
            curve, seconds = pair[side]["curve"], pair[side]["step_seconds"]
            x = [point["step"] * seconds for point in curve]
            y = [100 * point[metric] for point in curve]
            label = None if number else arm
            panel.plot(x, y, marker=".", color=f"C{colour}", label=label, linewidth=1)
    panel.set_xlabel("processor seconds of training steps")
    panel.set_ylabel(f"{metric} on dev")
    panel.legend(fontsize=8)
    return figure


def is_faster(data: dict[str, Any]) -> Answer:
    ratio = Estimate.from_json(data["ratio"])
    sentence = (
        f"To the dev score that both reach it takes {ratio.show(digits=2)} times the processor "
        f"time of soft attention (seeds: {ratio.count}; one machine, one process)."
    )
    return tell([(-ratio).shifted(1)], sentence)


EXPERIMENT = Experiment(
    "paper3-time",
    "How long does spatial self-attention train until it captions as well as soft attention?",
    Options,
    no_tasks,
    conclude,
    (
        Claim(
            "section 4",
            "Spatial self-attention is faster to train than a recurrent captioner.",
            is_faster,
        ),
    ),
    arms,
)
