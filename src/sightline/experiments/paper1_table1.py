"""Paper 1, table 1: BLEU with and without the brevity penalty, and METEOR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sightline.experiments.captioned import by_run, every_picture, say
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.scored import draw, estimated, models_of, spoken, tabulate, to_json
from sightline.metrics.scoring import check_metrics, score


@dataclass(frozen=True)
class Options:
    """The paper reports BLEU without the brevity penalty, and its appendix BLEU with it."""

    metrics: tuple[str, ...] = ("bleu-no-bp", "bleu", "meteor")

    def __post_init__(self) -> None:
        check_metrics(self.metrics)


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, say)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows = {
        run: {
            name: estimated(each)
            for name, each in score(*spoken(of_run), metrics=options.metrics).items()
        }
        for run, of_run in by_run(records).items()
    }
    models = models_of(records)
    return Findings(tabulate(rows, models), draw(rows), {"rows": to_json(rows), "models": models})


EXPERIMENT = Experiment(
    "paper1-table1",
    "What do captioners score in BLEU, with and without its brevity penalty?",
    Options,
    tasks,
    conclude,
)
