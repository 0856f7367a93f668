"""Paper 0, table 3: the four ways to fuse masks and attention, against no alignment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.config import require_at_least
from sightline.experiments.claims import Answer, Claim, not_kept, tell, untested
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

GAINS = {"gate": 5.0, "decay": 4.2, "average": 2.3, "max": 2.8}  # of CIDEr, in the paper
FUSIONS = tuple(GAINS)
PLAIN = "plain"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Plain and gate have all seeds, the other fusions fewer: the claim is of the gate."""

    seeds: int = 11
    other_seeds: int = 5
    recipe: str = "scenes/fusion"
    plain: str = "scenes/fusion_plain"  # the same but for alignment
    penalty: float | None = None  # λ; default: the recipe's
    # Paper 0's table is on the validation split.
    split: str = "dev"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, "other_seeds", other_seeds=self.other_seeds)


def arms(options: Options) -> list[Arm]:
    price = () if options.penalty is None else (f"objective.penalty={options.penalty}",)
    every = [Arm(PLAIN, options.plain, (), options.seeds)]
    for fusion in FUSIONS:
        seeds = options.seeds if fusion == "gate" else min(options.other_seeds, options.seeds)
        overrides = (f"model.alignment.fusion={fusion}", *price)
        every.append(Arm(fusion, options.recipe, overrides, seeds))
    return every


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows: list[dict[str, Any]] = []
    for arm in arms_of(records):
        masks = [r["terms"]["mask"] for r in of_arm(records, arm) if "mask" in r["terms"]]
        row: dict[str, Any] = {"arm": arm, "mask": estimate_seeds(masks)}
        for split in ("dev", "test"):
            row[split] = score_of(records, arm, split, "CIDEr-D")
            row[f"{split}_bleu"] = score_of(records, arm, split, "BLEU-4")
            if arm != PLAIN:
                row[f"{split}_gain"] = gain(records, arm, PLAIN, split, "CIDEr-D")
        rows.append(row)
    header = ["fusion", "seeds", "mean mask"]
    header += ["dev CIDEr-D", "dev, above plain", "test CIDEr-D", "test, above plain"]
    table = to_markdown(header, [_cells(row) for row in rows])
    above = {
        other: {
            split: gain(records, "gate", other, split, "CIDEr-D").to_json()
            for split in ("dev", "test")
        }
        for other in FUSIONS[1:]
    }
    average_below = {
        other: {
            split: gain(records, other, "average", split, "CIDEr-D").to_json()
            for split in ("dev", "test")
        }
        for other in FUSIONS
        if other != "average"
    }
    data = {
        "rows": rows_to_json(rows),
        "gate_above": above,
        "average_below": average_below,
        "split": options.split,
    }
    return Findings(table, _draw(rows), data)


def _cells(row: dict[str, Any]) -> list[str]:
    cells = [row["arm"], str(row["dev"].count), row["mask"].show(digits=2)]
    for split in ("dev", "test"):
        above = row.get(f"{split}_gain")
        cells += [row[split].show(100), "-" if above is None else above.show(100, sign="+")]
    return cells


def _draw(rows: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 2.8), layout="constrained")
    panel = figure.subplots()
    fusions = [row for row in rows if "dev_gain" in row]
    for shift, split in ((0.12, "dev"), (-0.12, "test")):
        estimates = [row[f"{split}_gain"] for row in fusions]
        panel.errorbar(
            [100 * each.mean for each in estimates],
            [number + shift for number in range(len(fusions))],
            xerr=error_bars(estimates, 100),
            fmt="o",
            capsize=3,
            label=split,
        )
    panel.axvline(0, color="grey", linewidth=0.8)
    panel.set_yticks(range(len(fusions)), [row["arm"] for row in fusions])
    panel.set_xlabel("CIDEr-D above no alignment, paired by seed")
    panel.legend(fontsize=8)
    return figure


def _row(data: dict[str, Any], arm: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in data["rows"] if row["arm"] == arm)
    return row


def beats_plain(fusion: str) -> Callable[[dict[str, Any]], Answer]:
    """Whether a fusion is better than none, where masks do tell regions apart."""

    def test(data: dict[str, Any]) -> Answer:
        row, split = _row(data, fusion), data["split"]
        mask, above = row["mask"]["mean"], Estimate.from_json(row[f"{split}_gain"])
        if reason := outside({fusion: mask}):
            return untested(reason)
        return tell(
            [above],
            f"CIDEr-D on {split} is {above.show(100, sign='+')} against no alignment, paired over "
            f"{above.count} seeds (mean mask {mask:.2f}).",
            claimed=GAINS[fusion] / 100,
        )

    return test


def gate_is_best(data: dict[str, Any]) -> Answer:
    """Whether the gate is above every other fusion, seed by seed."""
    return _paired(data, data["gate_above"], "of the gate", "against {}")


def average_is_least(data: dict[str, Any]) -> Answer:
    """Whether every other fusion is above the average, seed by seed."""
    if "average_below" not in data:
        return not_kept("what the others are above the average")
    return _paired(data, data["average_below"], "above that of the average", "of {}")


def _paired(data: dict[str, Any], gains: dict[str, Any], what: str, each: str) -> Answer:
    split = data["split"]
    masks = {row["arm"]: row["mask"]["mean"] for row in data["rows"] if row["arm"] in FUSIONS}
    if reason := outside(masks):
        return untested(reason)
    more = {other: Estimate.from_json(of[split]) for other, of in gains.items()}
    words = ", ".join(f"{e.show(100, sign='+')} {each.format(o)}" for o, e in more.items())
    return tell([*more.values()], f"CIDEr-D {what} on {split}, paired by seed: {words}.")


EXPERIMENT = Experiment(
    "paper0-table3",
    "Which way to fuse masks and attention captions best?",
    Options,
    no_tasks,
    conclude,
    (
        *(
            Claim(
                "table 3",
                f"The fusion `{fusion}` raises CIDEr above the plain Transformer's (by {more}).",
                beats_plain(fusion),
            )
            for fusion, more in GAINS.items()
        ),
        Claim("table 3", "The gate is the best of the four fusions.", gate_is_best),
        Claim("table 3", "The average gains least of the four fusions.", average_is_least),
    ),
    arms,
)
