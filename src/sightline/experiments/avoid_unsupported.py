"""Captions that `sightline caption --avoid-unsupported` chooses, against the first of the beam.

Every picture is captioned as ever, and again by the caption of the beam that it supports best.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.data.dataset import CaptionedImage
from sightline.experiments.captioned import by_run, caption_of, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, judge, untested
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import findings_of_changes, score_runs

MARGIN = 0.01  # a point of CIDEr-D less counts as none


@dataclass(frozen=True)
class Options(ScoreOptions):
    """CHAIR, and what a caption must not lose for it."""

    metrics: tuple[str, ...] = ("bleu", "meteor", "cider-d", "chair")


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(subjects, _choose)


def _choose(subject: Subject, image: CaptionedImage, number: int) -> Record:
    picture, first = caption_of(subject.captioner, image)
    _, other = subject.captioner.caption_without_unsupported(picture, first)
    chosen = first if other is None else other
    return {"caption": first.text, "chosen": chosen.text, "references": list(image.captions)}


def conclude(records: Sequence[Record], options: Options) -> Findings:
    runs = by_run(records)
    both = [
        record | {"run": name, "caption": record[caption]}
        for run, of_run in runs.items()
        for name, caption in ((run, "caption"), (_chosen(run), "chosen"))
        for record in of_run
    ]
    steps = [(run, _chosen(run)) for run in runs]
    findings = findings_of_changes(score_runs(both, options.metrics), both, steps)
    changed = {
        run: estimate([float(r["chosen"] != r["caption"]) for r in of_run], range(len(of_run)))
        for run, of_run in runs.items()
    }
    rows = [[run, share.show(100), str(share.count)] for run, share in changed.items()]
    below = to_markdown(["run", "captions changed, %", "pictures"], rows)
    data = findings.data | {"changed": {run: share.to_json() for run, share in changed.items()}}
    return Findings(f"{findings.table}\n{below}", findings.figure, data)


def _chosen(run: str) -> str:
    return f"{run}, best supported"


def is_no_worse(data: dict[str, Any]) -> Answer:
    """CIDEr-D does not fall by a point or more."""
    every: list[Estimate] = []
    sentences = []
    for step, of_step in data["changes"].items():
        changes = {
            name: Estimate.from_json(of_step[name])
            for name in ("CIDEr-D", "CHAIRi")
            if name in of_step
        }
        if "CIDEr-D" not in changes:
            return untested("CIDEr-D was not measured.")
        every.append(changes["CIDEr-D"])
        shown = ", ".join(f"{change.show(100, sign='+')} {n}" for n, change in changes.items())
        sentences.append(f"{step}: {shown}")
    sentence = "; ".join(sentences) + "."
    if not any(share["mean"] for share in data["changed"].values()):
        return untested("No caption was changed.")
    return judge([change.shifted(MARGIN) for change in every], sentence)


EXPERIMENT = Experiment(
    "avoid-unsupported",
    "Are captions that avoid unsupported words worse than others?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "ours",
            "Captions that avoid unsupported words are no worse than others.",
            on_enough(is_no_worse),
        ),
    ),
)
