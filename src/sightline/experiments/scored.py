"""Rows of a table of scores: the captions of each run against their references."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sightline.experiments.captioned import by_run
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Record
from sightline.metrics.bootstrap import interval
from sightline.metrics.score import Score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = dict[str, dict[str, Estimate]]
"""Scores by run, then by name."""


def spoken(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Captions, and their references."""
    return [r["caption"] for r in records], [r["references"] for r in records]


def estimated(score: Score) -> Estimate:
    """A score with its interval over pictures."""
    return Estimate(score.corpus, *interval(score), len(score.per_image))


def difference(one: Score, other: Score) -> Estimate:
    """How much more one run's mean score per picture is, the same pictures for both."""
    gains = (one.per_image - other.per_image).tolist()
    return estimate(gains, range(len(gains)))


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


def to_json(rows: Rows) -> dict[str, Any]:
    return {run: {name: e.to_json() for name, e in of.items()} for run, of in rows.items()}


def draw(rows: Rows) -> "Figure":
    """A panel for each score, a mark for each run."""
    from matplotlib.figure import Figure

    names = list(next(iter(rows.values())))
    figure = Figure(figsize=(2.2 * len(names) + 1, 0.4 * len(rows) + 1.4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, names, strict=True):
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
        # (A bound may be beyond the mean by what numbers are rounded by.)
        bounds = [[100 * max(value.mean - value.low, 0)], [100 * max(value.high - value.mean, 0)]]
        panel.errorbar(100 * value.mean, place, xerr=bounds, fmt="o", color=colour, label=label)
