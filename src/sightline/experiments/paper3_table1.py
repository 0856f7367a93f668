"""Paper 3, table 1 and eq. 2: spatial self-attention with and without d_len, and soft attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.claims import Answer, Claim, tell
from sightline.experiments.estimate import Estimate, rows_to_json, to_markdown
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.scored import mark
from sightline.experiments.training_tasks import (
    TrainingOptions,
    arms_of,
    gain,
    score_of,
)

SPATIAL, PLAIN, SOFT = "spatial", "without-d_len", "soft-attention"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """The recipes that are compared; `metrics` may add meteor."""

    recipe: str = "scenes/spatial_transformer"
    soft: str = "scenes/soft_attention"


def arms(options: Options) -> list[Arm]:
    return [
        Arm(SPATIAL, options.recipe, (), options.seeds),
        Arm(PLAIN, options.recipe, ("model.scale_by_length=false",), options.seeds),
        Arm(SOFT, options.soft, (), options.seeds),
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    names = list(records[0]["test"])
    rows: list[dict[str, Any]] = [
        {"arm": arm, **{name: score_of(records, arm, "test", name) for name in names}}
        for arm in arms_of(records)
    ]
    table = to_markdown(
        ["captioner", *names, "seeds"],
        [
            [row["arm"], *(row[name].show(100) for name in names), str(row[names[0]].count)]
            for row in rows
        ],
    )
    gains = {
        other: gain(records, SPATIAL, other, "test", "CIDEr-D").to_json() for other in (PLAIN, SOFT)
    }
    return Findings(table, _draw(rows), {"rows": rows_to_json(rows), "spatial_above": gains})


def _draw(rows: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 2.4), layout="constrained")
    panel = figure.subplots()
    for number, row in enumerate(rows):
        mark(panel, row["BLEU-4"], number, f"C{number}")
    panel.set_yticks(range(len(rows)), [row["arm"] for row in rows])
    panel.set_xlabel("BLEU-4 on test")
    return figure


def _answer(data: dict[str, Any], other: str, sign: int) -> Answer:
    above = Estimate.from_json(data["spatial_above"][other])
    sentence = f"CIDEr-D on test is {above.show(100, sign='+')} against {other}"
    return tell([above if sign > 0 else -above], f"{sentence}, paired over {above.count} seeds.")


EXPERIMENT = Experiment(
    "paper3-table1",
    "Does spatial self-attention caption as well as soft attention, and does d_len help?",
    Options,
    no_tasks,
    conclude,
    (
        Claim(
            "section 2.3",
            "Adding d_len to τ is better than the τ of Vaswani et al.",
            lambda data: _answer(data, PLAIN, 1),
        ),
        Claim(
            "table 1",
            "Spatial self-attention scores less than Show, Attend and Tell.",
            lambda data: _answer(data, SOFT, -1),
        ),
    ),
    arms,
)
