"""Paper 4, figure 5: the LRP heatmaps of many hallucinated words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import every_picture, on_enough
from sightline.experiments.claims import Claim
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import choose, no_pictures, show_heatmap
from sightline.experiments.hallucinations import LRP, explain_words, mostly_negative, tabulate


@dataclass(frozen=True)
class Options:
    """How many words are drawn."""

    shown: int = 12


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, lambda subject, image, _: explain_words(subject, image, (LRP,)))


def conclude(records: Sequence[Record], options: Options) -> Findings:
    table, numbers, cells = tabulate(records)
    return Findings(table, _draw(choose(cells, options.shown)), {"positive": numbers})


def _draw(cells: Sequence[Record]) -> Any:
    from matplotlib.figure import Figure

    if not cells:
        return no_pictures("no word of these captions is wrong by the references")
    columns = min(len(cells), 4)
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(2.5 * columns, 2.5 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    for panel, cell in zip(panels, cells, strict=False):
        show_heatmap(panel, cell["image"], cell["maps"][LRP])
        panel.set_title(f"“{cell['word']}”, {cell['positive']:.0%} for it", fontsize=8)
    return figure


EXPERIMENT = Experiment(
    "paper4-figure5",
    "Is the evidence for made-up words negative?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "figure 5",
            "LRP shows almost all negative evidence for hallucinated words.",
            on_enough(mostly_negative),
        ),
    ),
)
