"""Paper 4, table 1: BERTScore with idf weights, CIDEr, SPICE, ROUGE-L and METEOR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import by_run, every_picture, on_enough, say
from sightline.experiments.claims import Answer, Claim
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import (
    estimate_rows,
    findings_of,
    is_ahead,
    score_runs,
    spoken,
)
from sightline.metrics.bertscore import bertscore
from sightline.metrics.scoring import check_metrics


@dataclass(frozen=True)
class Options(ScoreOptions):
    """BERTScore is named with its model; the paper used roberta-large."""

    metrics: tuple[str, ...] = ("cider", "spice-spacy", "rouge-l", "meteor")
    bertscore: bool = True
    bertscore_model: str | None = None  # a local folder; default: the one of the extra
    bertscore_layer: int | None = None
    idf: bool = True

    def __post_init__(self) -> None:
        check_metrics([*self.metrics, *["bertscore"] * self.bertscore])


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, say)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    scores = score_runs(records, options.metrics)
    for run, of_run in by_run(records).items() if options.bertscore else ():
        *_, f = bertscore(
            *spoken(of_run),
            model=options.bertscore_model,
            layer=options.bertscore_layer,
            idf=options.idf,
        )
        scores[run] = {f.name: f, **scores[run]}
    return findings_of(estimate_rows(scores), records)


def grid_is_ahead(data: dict[str, Any]) -> Answer:
    """On CIDEr."""
    nothing = "No run of grid-TD was compared with one of adaptive attention."
    # On Flickr30k 44.95 against 42.28, on COCO 90.67 against 87.75.
    return is_ahead(data, ["CIDEr"], nothing, "grid_td", "adaptive_attention", claimed=0.0267)


EXPERIMENT = Experiment(
    "paper4-table1",
    "What do captioners score in BERTScore with idf weights, and in four other metrics?",
    Options,
    tasks,
    conclude,
    (Claim("table 1", "Grid-TD scores above adaptive attention.", on_enough(grid_is_ahead)),),
)
