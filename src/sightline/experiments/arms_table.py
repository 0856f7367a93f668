"""A table of arms: the mean of each score over seeds, and what an arm gains over its control."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sightline.experiments.claims import Answer, tell
from sightline.experiments.estimate import Estimate, to_markdown
from sightline.experiments.experiment import Findings, Record
from sightline.experiments.scored import mark
from sightline.experiments.training_tasks import arms_of, gain, of_arm, score_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLIT = "test"
KEPT = ("arm", "seed", "dev", "test", "terms", "steps", "epochs")  # of a record


def compare_arms(
    records: Sequence[Record], pairs: Sequence[tuple[str, str]], terms: Sequence[str] = ()
) -> Findings:
    """Rows of arms, then of an arm minus its control, paired by seed; `terms` are of the loss.

    Each arm's steps are beside it: arms of unequal length are not alike.
    """
    arms = arms_of(records)
    # (CHAIR is not defined for captions that name no object of COCO.)
    names = [n for n in records[0][SPLIT] if all(r[SPLIT][n] is not None for r in records)]
    rows = [
        [arm, *(score_of(records, arm, SPLIT, name).show(100) for name in names)]
        + [_term(records, arm, term) for term in terms]
        + [_steps(records, arm)]
        for arm in arms
    ]
    gains = {
        f"{arm} - {control}": {n: gain(records, arm, control, SPLIT, n) for n in names}
        for arm, control in pairs
        if arm in arms and control in arms
    }
    for pair, of_pair in gains.items():
        rest = ["-"] * (len(terms) + 1)
        rows.append([pair, *(of_pair[n].show(100, sign="+") for n in names), *rest])
    data = {
        "arms": {a: {n: score_of(records, a, SPLIT, n).to_json() for n in names} for a in arms},
        "gains": {pair: {n: e.to_json() for n, e in of.items()} for pair, of in gains.items()},
        "runs": [
            {key: record[key] for key in KEPT if key in record}  # kept ones may be older
            for record in records
        ],
    }
    table = to_markdown([f"arm, on {SPLIT}", *names, *terms, "steps"], rows)
    return Findings(table, _draw(gains, names), data)


def _term(records: Sequence[Record], arm: str, term: str) -> str:
    values = [r["terms"][term] for r in of_arm(records, arm) if term in r["terms"]]
    return f"{sum(values) / len(values):.3f}" if values else "-"


def _steps(records: Sequence[Record], arm: str) -> str:
    """How many the runs of an arm were trained for: one number, or from the least to the most."""
    steps = sorted({record["steps"] for record in of_arm(records, arm) if "steps" in record})
    return " to ".join(f"{each:,}" for each in dict.fromkeys([*steps[:1], *steps[-1:]])) or "-"


def _draw(gains: dict[str, dict[str, Estimate]], names: Sequence[str]) -> "Figure":
    """What each arm gains, with Student's interval over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 0.35 * len(names) * max(len(gains), 1) + 1.2), layout="constrained")
    panel = figure.subplots()
    places: dict[str, float] = {}
    for row, (pair, of_pair) in enumerate(gains.items()):
        for number, name in enumerate(names):
            place = row * (len(names) + 1) + number
            places[f"{pair}: {name}"] = place
            value = of_pair[name]
            if value.count > 1:
                mark(panel, value, place, f"C{row}")
            elif value.count:
                panel.plot(100 * value.mean, place, "o", color=f"C{row}")
    panel.axvline(0, color="grey", linewidth=0.8)
    panel.set_yticks(list(places.values()), list(places), fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("gain, points")
    return figure


def gains_in(data: dict[str, Any], pair: str, name: str, claimed: float = 0.0) -> Answer:
    """Whether an arm is above its control, by as much as is claimed or less."""
    value = Estimate.from_json(data["gains"][pair][name])
    seeds = f"{value.count} seed{'s' * (value.count != 1)}"
    sentence = f"{pair}: {value.show(100, sign='+')} points of {name}, {seeds}."
    return tell([value], sentence, claimed)
