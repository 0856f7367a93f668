"""Paper 4, table 1: BERTScore with idf weights, CIDEr, SPICE, ROUGE-L and METEOR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.captioned import by_run, every_picture, say
from sightline.experiments.claims import Answer, Claim, decide, untested
from sightline.experiments.estimate import Estimate
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.scored import (
    difference,
    draw,
    estimated,
    models_of,
    spoken,
    tabulate,
    to_json,
)
from sightline.metrics.bertscore import bertscore
from sightline.metrics.scoring import check_metrics, score


@dataclass(frozen=True)
class Options:
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
    scores = {}
    for run, of_run in by_run(records).items():
        scores[run] = score(*spoken(of_run), metrics=options.metrics)
        if options.bertscore:
            *_, f = bertscore(
                *spoken(of_run),
                model=options.bertscore_model,
                layer=options.bertscore_layer,
                idf=options.idf,
            )
            scores[run] = {f.name: f, **scores[run]}
    rows = {run: {name: estimated(s) for name, s in of.items()} for run, of in scores.items()}
    models = models_of(records)
    pairs = [(a, b) for a in models for b in models if models[a] == "grid_td" != models[b]]
    gains = {
        f"{a} - {b}": {name: difference(s, scores[b][name]).to_json() for name, s in of.items()}
        for a, b in pairs
        if models[b] == "adaptive_attention"
        for of in (scores[a],)
        if len(by_run(records)[a]) == len(by_run(records)[b])
    }
    data = {"rows": to_json(rows), "models": models, "grid_td_gains": gains}
    return Findings(tabulate(rows, models), draw(rows), data)


def grid_is_ahead(data: dict[str, Any]) -> Answer:
    """On CIDEr, of the first pair of runs."""
    for pair, gains in data["grid_td_gains"].items():
        if "CIDEr" in gains:
            gain = Estimate.from_json(gains["CIDEr"])
            return decide(gain.above(0), f"{pair}: {gain.show(100, sign='+')} points of CIDEr.")
    return untested("No run of grid-TD was compared with one of adaptive attention.")


EXPERIMENT = Experiment(
    "paper4-table1",
    "What do captioners score in BERTScore with idf weights, and in four other metrics?",
    Options,
    tasks,
    conclude,
    (Claim("table 1", "Grid-TD scores above adaptive attention.", grid_is_ahead),),
)
