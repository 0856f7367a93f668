"""Paper 0, table 1: BLEU, METEOR, ROUGE-L, CIDEr-D and SPICE of captioners on one split.

`RUN:1` is a row of what cross-entropy ended with, `RUN` one of what follows it. SPICE is ours, over
spaCy's parses, and named so: its numbers are not those of the official tool.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import every_picture, on_enough, say
from sightline.experiments.claims import Answer, Claim
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.masks import ALIGNED, mean_masks, where_masks_work
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import estimate_rows, findings_of, is_ahead, score_runs


@dataclass(frozen=True)
class Options(ScoreOptions):
    """The paper's metrics; `spice` is the official tool, if it is installed."""

    metrics: tuple[str, ...] = ("bleu", "meteor", "rouge-l", "cider-d", "spice-spacy")


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, say)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    scores = score_runs(records, options.metrics)
    return findings_of(estimate_rows(scores), records, masks=mean_masks(records))


def aligned_is_best(data: dict[str, Any]) -> Answer:
    nothing = "No run with alignment was compared with one of another model."
    names = ["BLEU-4", "METEOR", "CIDEr-D"]
    return is_ahead(data, names, nothing, ALIGNED)


EXPERIMENT = Experiment(
    "paper0-table1",
    "What do captioners score in the metrics of COCO, SPICE among them?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 1",
            "The A² Transformer is better than other captioners in BLEU-4, METEOR and CIDEr.",
            on_enough(where_masks_work(aligned_is_best)),
        ),
    ),
)
