"""Paper 0, table 2: an ensemble of four runs, and its captions for a test server.

`captions.json` has the ensemble's captions in COCO's results format. Pictures without references,
such as those of `image_info_test2014.json`, are captioned and not scored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError
from sightline.experiments.captioned import by_run, every_picture, say
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.estimate import Estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import no_pictures
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import (
    Scores,
    average,
    difference,
    estimate_rows,
    findings_of,
    models_of,
    score_runs,
)

ENSEMBLE = "ensemble"
SERVER = "captions.json"


@dataclass(frozen=True)
class Options(ScoreOptions):
    """The metrics of the server."""

    metrics: tuple[str, ...] = ("bleu", "meteor", "rouge-l", "cider-d")


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    if len(subjects) < 2:
        raise ConfigError("an ensemble has several runs; the paper's has four, of four seeds")
    first, *others = subjects
    names = [image.name for image in first.images]
    for other in others:
        if [image.name for image in other.images] != names:
            raise ConfigError(f"{other.name}: was given other pictures than {first.name}")

    def load() -> Captioner:
        return Captioner.load(*map(_checkpoint, subjects), device=first.captioner.device)

    together = Subject(ENSEMBLE, f"ensemble of {len(subjects)}", first.images, load)
    return every_picture([*subjects, together], _say)


def _checkpoint(subject: Subject) -> Path:
    if (folder := subject.captioner.checkpoint) is None:
        raise ConfigError(f"{subject.name}: has no checkpoint of its own to be averaged")
    return folder


def _say(subject: Subject, image: CaptionedImage, number: int) -> Record:
    return {"image_id": image.id, **say(subject, image, number)}


def conclude(records: Sequence[Record], options: Options) -> Findings:
    of_ensemble = by_run(records)[ENSEMBLE]
    results = [{"image_id": r["image_id"], "caption": r["caption"]} for r in of_ensemble]
    if not any(record["references"] for record in of_ensemble):
        findings = _without_references(records)
    else:
        scores = score_runs(records, options.metrics)
        findings = findings_of(estimate_rows(scores), records, above_members=above_members(scores))
    return Findings(findings.table, findings.figure, findings.data, {SERVER: results})


def _without_references(records: Sequence[Record]) -> Findings:
    models, runs = models_of(records), by_run(records)
    cells = [[run, models[run], str(len(of_run))] for run, of_run in runs.items()]
    figure = no_pictures(f"no references to score against: {SERVER} is for a test server")
    data = {"rows": {}, "models": models, "above_members": {}}
    return Findings(to_markdown(["run", "model", "captions"], cells), figure, data)


def above_members(scores: Scores) -> dict[str, Any]:
    """How much more the ensemble scores than its members do on average."""
    members = [of_run for run, of_run in scores.items() if run != ENSEMBLE]
    return {
        name: difference(score, average([of_run[name] for of_run in members])).to_json()
        for name, score in scores[ENSEMBLE].items()
    }


def needs_the_server(data: dict[str, Any]) -> Answer:
    sentence = "Captions were not sent to the server, and the other systems are not ours."
    if "CIDEr-D" in data["above_members"]:
        gain = Estimate.from_json(data["above_members"]["CIDEr-D"])
        sentence += (
            f" Here the ensemble of {len(data['rows']) - 1} is {gain.show(100, sign='+')} points "
            "of CIDEr-D above the mean of its members."
        )
    return untested(sentence)


EXPERIMENT = Experiment(
    "paper0-table2",
    "What does an ensemble of runs score, and what would it send to a test server?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 2",
            "On COCO's test server, an ensemble of four A² Transformers is above other systems.",
            needs_the_server,
        ),
    ),
)
