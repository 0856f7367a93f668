"""Rows of a table of scores: the captions of each run against their references."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.errors import DataError
from sightline.experiments.captioned import by_run
from sightline.experiments.claims import Answer, tell, untested
from sightline.experiments.estimate import Estimate, error_bars, estimate_gap, to_markdown
from sightline.experiments.experiment import Findings, Record
from sightline.metrics.bootstrap import compare, interval
from sightline.metrics.score import Floats, Score
from sightline.metrics.scoring import score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scores = dict[str, dict[str, Score]]
"""By run, then by the score's name."""
Rows = dict[str, dict[str, Estimate]]
"""The same, with intervals over pictures."""


def spoken(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Captions, and their references, which every picture must have."""
    if without := [r["picture"] for r in records if not r["references"]]:
        raise DataError(f"{without[0]}: has no captions to score against")
    return [r["caption"] for r in records], [r["references"] for r in records]


def score_runs(records: Sequence[Record], metrics: Sequence[str]) -> Scores:
    """Every run's captions by every metric; of SPICE the whole, not its six parts."""
    return {
        run: {
            name: each
            for name, each in score(*spoken(of_run), metrics=metrics).items()
            if not name.startswith("SPICE") or name.endswith((")", "SPICE"))
        }
        for run, of_run in by_run(records).items()
    }


def estimated(score: Score) -> Estimate:
    """A score with its interval over pictures."""
    return Estimate(score.corpus, *interval(score), len(score.per_image))


def estimate_rows(scores: Scores) -> Rows:
    """Every score with its interval over pictures."""
    return {run: {name: estimated(s) for name, s in of.items()} for run, of in scores.items()}


def difference(one: Score, other: Score) -> Estimate:
    """How much higher one score is than another, over the same pictures."""
    found = compare(one, other)
    return Estimate(found.difference, found.low, found.high, len(one.per_image))


@dataclass(frozen=True, eq=False)
class _Average(Score):
    scores: Sequence[Score] = ()

    def resampled(self, weights: Floats) -> Floats:
        return np.asarray(np.mean([score.resampled(weights) for score in self.scores], axis=0))


def average(scores: Sequence[Score]) -> Score:
    """The mean of some runs' scores, each resampled by its metric's own statistic."""
    corpus = float(np.mean([score.corpus for score in scores]))
    per_image = np.mean([score.per_image for score in scores], axis=0)
    return _Average(scores[0].name, corpus, per_image, scores=scores)


def runs_of(data: dict[str, Any], model: str) -> list[str]:
    """The runs of a model, from the data that `findings_of` keeps."""
    return [run for run, of_run in data.get("models", {}).items() if of_run == model]


def gaps_in(
    data: dict[str, Any], name: str, model: str, control: str | None = None
) -> dict[str, Estimate]:
    """How much higher a score is of a model's runs than of those of others, over as many pictures.

    From the data that `findings_of` keeps; `control` names the one other model that counts.
    """
    scores: dict[tuple[str, int], list[float]] = {}
    for run, of_run in data["rows"].items():
        if name in of_run and of_run[name]["mean"] is not None:
            key = data["models"][run], of_run[name]["count"]
            scores.setdefault(key, []).append(of_run[name]["mean"])
    return {
        f"{model} - {other}": estimate_gap(scores[model, pictures], theirs)
        for (other, pictures), theirs in scores.items()
        if other != model and control in (None, other) and (model, pictures) in scores
    }


def is_ahead(
    data: dict[str, Any],
    names: Sequence[str],
    nothing: str,
    model: str,
    control: str | None = None,
    claimed: float = 0.0,
) -> Answer:
    """Whether a model's runs score higher than others; `nothing` is said where there are none.

    `claimed` is how much higher, if the paper says: see `tell`.
    """
    gaps = {
        f"{pair}: {gap.show(100, sign='+')} points of {name}": gap
        for name in names
        for pair, gap in gaps_in(data, name, model, control).items()
    }
    if not gaps:
        return untested(nothing)
    return tell([*gaps.values()], "; ".join(gaps) + ".", claimed)


def findings_of(rows: Rows, records: Sequence[Record], **data: Any) -> Findings:
    """A table and a figure of scores; `data` is kept beside them."""
    models = models_of(records)
    numbers = {run: {name: e.to_json() for name, e in of.items()} for run, of in rows.items()}
    return Findings(tabulate(rows, models), draw(rows), {"rows": numbers, "models": models, **data})


def findings_of_changes(
    scores: Scores, records: Sequence[Record], steps: Sequence[tuple[str, str]]
) -> Findings:
    """A table and a figure of scores, and how each changes from one run to another."""
    changes = {
        f"{before} to {after}": {
            name: difference(score, scores[before][name]) for name, score in scores[after].items()
        }
        for before, after in steps
    }
    kept = {step: {name: e.to_json() for name, e in of.items()} for step, of in changes.items()}
    findings = findings_of(estimate_rows(scores), records, changes=kept)
    names = list(next(iter(scores.values())))
    cells = [
        [step, *(of[name].show(100, sign="+") for name in names)] for step, of in changes.items()
    ]
    below = to_markdown(["change", *names], cells)
    return Findings(f"{findings.table}\n{below}", findings.figure, findings.data)


def tabulate(rows: Rows, models: dict[str, str]) -> str:
    """A row for each run, in percent."""
    names = list(next(iter(rows.values())))
    cells = [
        [run, models[run], *(of[name].show(100) for name in names)] for run, of in rows.items()
    ]
    return to_markdown(["run", "model", *names], cells)


def models_of(records: Sequence[Record]) -> dict[str, str]:
    """The captioner of each run."""
    return {run: of_run[0]["model"] for run, of_run in by_run(records).items()}


def draw(rows: Rows) -> "Figure":
    """A panel for each score, a mark for each run."""
    from matplotlib.figure import Figure

    names = list(next(iter(rows.values())))
    across = min(len(names), 5)
    down = -(-len(names) // across)
    size = (2.2 * across + 1, down * (0.4 * len(rows) + 1.4))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel in panels[len(names) :]:
        panel.axis("off")
    for panel, name in zip(panels, names, strict=False):
        for number, of_run in enumerate(rows.values()):
            mark(panel, of_run[name], number, f"C{number}")
        panel.set_title(name, fontsize=8)
        panel.set_yticks(range(len(rows)), list(rows), fontsize=8)
        panel.margins(y=0.3)
    panels[0].invert_yaxis()
    return figure


def mark(panel: Any, value: Estimate, place: float, colour: str, label: str | None = None) -> None:
    """A mean in percent with its interval, at a place of the vertical axis."""
    if value.count:
        bounds = error_bars([value], 100)
        panel.errorbar(100 * value.mean, place, xerr=bounds, fmt="o", color=colour, label=label)
