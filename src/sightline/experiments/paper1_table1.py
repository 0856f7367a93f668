"""Paper 1, table 1: BLEU with and without the brevity penalty, and METEOR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import every_picture, say
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import estimate_rows, findings_of, score_runs


@dataclass(frozen=True)
class Options(ScoreOptions):
    """The paper reports BLEU without the brevity penalty, and its appendix BLEU with it."""

    metrics: tuple[str, ...] = ("bleu-no-bp", "bleu", "meteor")


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, say)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    return findings_of(estimate_rows(score_runs(records, options.metrics)), records)


def needs_the_others(data: dict[str, Any]) -> Answer:
    return untested(
        "The earlier captioners are not ours, and no captioner here was trained as the paper's."
    )


EXPERIMENT = Experiment(
    "paper1-table1",
    "What do captioners score in BLEU, with and without its brevity penalty?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 1",
            "Soft and hard attention are above earlier captioners in BLEU and METEOR.",
            needs_the_others,
        ),
    ),
)
