"""Rows of a table of scores: the captions of each run against their references."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.errors import DataError
from sightline.experiments.captioned import by_run
from sightline.experiments.claims import Answer, decide_all, on_several_runs
from sightline.experiments.estimate import Estimate, error_bars, estimate, to_markdown
from sightline.experiments.experiment import Findings, Record
from sightline.metrics.bootstrap import interval
from sightline.metrics.score import Score
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
    """How much more one run's mean score per picture is, the same pictures for both.

    A picture for which either is not defined says nothing: a caption without content words has no
    share of wrong ones.
    """
    gains = one.per_image - other.per_image
    known = gains[~np.isnan(gains)].tolist()
    return estimate(known, range(len(known)))


def gains_of(
    scores: Scores, records: Sequence[Record], model: str, control: str | None = None
) -> dict[str, dict[str, Any]]:
    """What each run of a model gains over each of another (default: any), by pair and score."""
    models, runs = models_of(records), by_run(records)
    return {
        f"{one} - {other}": {
            name: difference(score, scores[other][name]).to_json()
            for name, score in scores[one].items()
        }
        for one in models
        for other in models
        if models[one] == model != models[other]
        and control in (None, models[other])
        and [r["picture"] for r in runs[one]] == [r["picture"] for r in runs[other]]
    }


def is_ahead(gains: dict[str, dict[str, Any]], names: Sequence[str], nothing: str) -> Answer:
    """Whether scores are higher in every pair of runs; `nothing` is said where there is none."""
    parts = []
    for pair, of_pair in gains.items():
        for name in [name for name in names if name in of_pair]:
            gain = Estimate.from_json(of_pair[name])
            words = f"{pair}: {gain.show(100, sign='+')} points of {name}"
            parts.append((gain.above(0), words))
    return on_several_runs(decide_all(parts, nothing), gains)


def findings_of(rows: Rows, records: Sequence[Record], **data: Any) -> Findings:
    """A table and a figure of scores; `data` is kept beside them."""
    models = models_of(records)
    numbers = {run: {name: e.to_json() for name, e in of.items()} for run, of in rows.items()}
    return Findings(tabulate(rows, models), draw(rows), {"rows": numbers, "models": models, **data})


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
