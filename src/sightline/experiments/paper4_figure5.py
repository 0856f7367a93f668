"""Paper 4, figure 5: the LRP heatmaps of many hallucinated words."""

from collections.abc import Iterator, Sequence

from sightline.experiments.captioned import every_picture, on_enough
from sightline.experiments.claims import Claim
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import choose, draw_words
from sightline.experiments.hallucinations import LRP, explain_words, mostly_negative, tabulate
from sightline.experiments.options import GalleryOptions


def tasks(subjects: Sequence[Subject], options: GalleryOptions) -> Iterator[Task]:
    return every_picture(subjects, lambda subject, image, _: explain_words(subject, image, (LRP,)))


def conclude(records: Sequence[Record], options: GalleryOptions) -> Findings:
    table, numbers, cells = tabulate(records)
    figure = draw_words(
        choose(cells, options.shown),
        lambda cell: cell["maps"][LRP],
        lambda cell: f"“{cell['word']}”, {cell['positive']:.0%} for it",
    )
    return Findings(table, figure, {"positive": numbers})


EXPERIMENT = Experiment(
    "paper4-figure5",
    "Is the evidence for made-up words negative?",
    GalleryOptions,
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
