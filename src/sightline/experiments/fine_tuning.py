"""CHAIR before and after fine-tuning: does a later phase make captions name what is not there?

Give the phases of a run in their order, `RUN:1 RUN:2` or `RUN:1 RUN`, of as many runs as there are.
CHAIR knows the objects of COCO; wrong words are content words that no reference says.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.errors import ConfigError
from sightline.experiments.captioned import by_run, every_picture, on_enough, say
from sightline.experiments.claims import Answer, Claim, decide, untested
from sightline.experiments.estimate import Estimate
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import ScoreOptions
from sightline.experiments.scored import Scores, findings_of_changes, score_runs, spoken
from sightline.metrics.word_labels import wrong_words

MEASURES = ("CHAIRi", "CHAIRs", "wrong words")  # lower is better
MARGIN = 0.02  # so much more counts as no more


@dataclass(frozen=True)
class Options(ScoreOptions):
    """CHAIR, and what fine-tuning is to raise."""

    metrics: tuple[str, ...] = ("chair", "cider-d")


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    if not steps_of([subject.name for subject in subjects]):
        raise ConfigError("give a run before and after a phase, such as RUN:1 RUN:2")
    return every_picture(subjects, say)


def steps_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """Captioners of one run that follow each other, in the order given.

    >>> steps_of(["a:1", "a:2", "a", "b"])
    [('a:1', 'a:2'), ('a:2', 'a')]
    """
    runs: dict[str, list[str]] = {}
    for name in names:
        runs.setdefault(name.partition(":")[0], []).append(name)
    return [pair for of_run in runs.values() for pair in itertools.pairwise(of_run)]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    scores: Scores = score_runs(records, options.metrics)
    for run, of_run in by_run(records).items():
        wrong = wrong_words(*spoken(of_run))
        scores[run][wrong.name] = wrong
    scores = defined(scores)
    return findings_of_changes(scores, records, steps_of(list(scores)))


def defined(scores: Scores) -> Scores:
    """Without CHAIR, where no run names an object of COCO: it would be 0."""
    named = [of_run["CHAIRi"].statistics for of_run in scores.values() if "CHAIRi" in of_run]
    if any(counts is not None and counts[:, 1].any() for counts in named):
        return scores
    return {
        run: {name: score for name, score in of_run.items() if not name.startswith("CHAIR")}
        for run, of_run in scores.items()
    }


def does_not_hallucinate_more(data: dict[str, Any]) -> Answer:
    """No measure is higher after a phase, and pictures leave less than two points for it to be."""
    sentences: list[str] = []
    every: list[Estimate] = []
    for step, changes in data["changes"].items():
        known = {
            name: change
            for name in MEASURES
            if name in changes and (change := Estimate.from_json(changes[name])).count
        }
        shown = ", ".join(f"{name} {change.show(100, sign='+')}" for name, change in known.items())
        sentences.append(f"{step}: {shown}")
        every += known.values()
    sentence = "; ".join(sentences) + "."
    if any(change.above(0) for change in every):
        return decide(False, sentence)
    if not every or any(change.high > MARGIN for change in every):
        return untested(f"Pictures differ too much to tell. {sentence}")
    return decide(True, sentence)


EXPERIMENT = Experiment(
    "fine-tuning",
    "Do captions name more that is not there after fine-tuning than before?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "ours",
            "Fine-tuning does not make captions name more that is not there.",
            on_enough(does_not_hallucinate_more),
        ),
    ),
)
