"""Paper 4, figure 4: LRP, Grad-CAM's kin and attention for hallucinated words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import every_picture
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import (
    BANDS,
    NOT_RELATED,
    NOTHING_WRONG,
    band,
    choose,
    kept_picture,
    no_pictures,
    show_heatmap,
    write_words,
)
from sightline.experiments.hallucinations import explain_words, tabulate
from sightline.experiments.options import MethodOptions
from sightline.explain.methods import find_method


@dataclass(frozen=True)
class Options(MethodOptions):
    """How many words are drawn."""

    shown: int = 4


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(
        subjects, lambda subject, image, _: explain_words(subject, image, options.methods)
    )


def conclude(records: Sequence[Record], options: Options) -> Findings:
    table, numbers, cells = tabulate(records)
    figure = _draw(choose(cells, options.shown), options.methods)
    return Findings(table, figure, {"positive": numbers})


def _draw(cells: Sequence[Record], methods: Sequence[str]) -> Any:
    """A row for each word: the picture, its caption in the paper's colours, and the maps."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    if not cells:
        return no_pictures(NOTHING_WRONG)
    columns = 2 + len(methods)
    figure = Figure(figsize=(2.1 * columns, 2.1 * len(cells) + 0.4), layout="constrained")
    grid = figure.subplots(
        len(cells), columns, squeeze=False, width_ratios=[1, 1.6, *[1] * len(methods)]
    )
    for panels, cell in zip(grid, cells, strict=True):
        for panel in panels:
            panel.axis("off")
        panels[0].imshow(kept_picture(cell["image"]))
        panels[0].set_title(f"“{cell['word']}”", fontsize=9)
        write_words(panels[1], [[(text, band(relevance)) for text, relevance in cell["bands"]]])
        for panel, method in zip(panels[2:], methods, strict=True):
            show_heatmap(panel, cell["image"], cell["maps"][method])
            panel.set_title(find_method(method).label, fontsize=8)
    handles = [Patch(color=colour, label=label) for _, colour, label in BANDS]
    handles.append(Patch(color=NOT_RELATED, label="not before the word"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def needs_people(data: dict[str, Any]) -> Answer:
    return untested(
        "The figure shows both; whether one tells more than the other is for people to judge, and "
        "nobody was asked."
    )


EXPERIMENT = Experiment(
    "paper4-figure4",
    "What do LRP, Grad-CAM and attention show of words that are made up?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "figure 4",
            "Explanations cast light on why a word was made up; attention hardly does.",
            needs_people,
        ),
    ),
)
