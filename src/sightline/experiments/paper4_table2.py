"""Paper 4, table 2: is a word less likely without the words that it is said to rest on?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.experiments.captioned import (
    by_run,
    every_picture,
    gap_between,
    label_caption,
    on_enough,
    words_of,
)
from sightline.experiments.claims import Answer, Claim, decide_all, judge, tell, untested
from sightline.experiments.estimate import Estimate, estimate, estimate_gap, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import MethodOptions
from sightline.experiments.scored import mark, models_of, runs_of
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.metrics.coco_objects import mentions
from sightline.text.stop_words import STOP_WORDS

LRP, RANDOM = "lrp", "random"
KINDS = ("stop words", "object words")


@dataclass(frozen=True)
class Options(MethodOptions):
    """As in the paper. Grad-CAM and Guided Grad-CAM explain previous words alike."""

    methods: tuple[str, ...] = ("lrp", "grad_cam")
    skipped: int = 5  # words at the start of a caption that are not explained
    deleted: int = 3  # previous words


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        said = label_caption(captioner, image)
        texts = [word.text for word in said.caption.words]
        kinds = {place: _kind(texts[place], image) for place in range(len(texts))}
        places = [p for p, kind in kinds.items() if kind is not None and p >= options.skipped]
        words: list[Record] = [{"word": texts[p], "kind": kinds[p], "drops": {}} for p in places]
        draw = np.random.default_rng(number)
        rankings = {RANDOM: [draw.random(place) for place in places]}
        for method in options.methods if places else ():
            explanations = captioner.explain(
                said.picture, said.caption, words=places, method=method
            )
            rankings[method] = [_importance(why) for why in explanations]
        for method, of_words in rankings.items():
            for place, word, importance in zip(places, words, of_words, strict=True):
                kept = _without(texts[:place], importance, options.deleted)
                after = _log_probability(captioner, said.picture, [*kept, texts[place]])
                before = said.caption.words[place].log_probability
                word["drops"][method] = after < before
        return {"words": words}

    return every_picture(subjects, measure)


def _kind(word: str, image: CaptionedImage) -> str | None:
    """Stop words, and names of objects: of COCO's categories, or of what has boxes."""
    if word in STOP_WORDS:
        return KINDS[0]
    nouns = {thing.label.split()[-1] for thing in image.groundings}
    return KINDS[1] if word in nouns or mentions(word) else None


def _importance(why: Explanation) -> np.ndarray[Any, Any]:
    """Of each previous word but <start>: its relevance, or the size of its gradient."""
    relevance = why.words[1:]
    return relevance if find_method(why.method).adds_up else np.abs(relevance)


def _without(words: list[str], importance: np.ndarray[Any, Any], count: int) -> list[str]:
    """The words without the most important ones.

    >>> _without(["a", "dog", "on", "the"], np.array([0.1, 3.0, -2.0, 1.0]), 2)
    ['a', 'on']
    """
    gone = set(np.argsort(-importance, kind="stable")[:count].tolist())
    return [word for place, word in enumerate(words) if place not in gone]


def _log_probability(captioner: Captioner, picture: Any, words: list[str]) -> float:
    """Of the last word, after the others."""
    return captioner.read(picture, " ".join(words), alternatives=1).words[-1].log_probability


def conclude(records: Sequence[Record], options: Options) -> Findings:
    methods = [*options.methods, RANDOM]
    rows: list[list[str]] = []
    drops: dict[str, dict[str, Any]] = {}
    marks: dict[tuple[str, str], dict[str, Estimate]] = {}
    for run, of_run in by_run(records).items():
        words = words_of(of_run)
        drops[run] = {}
        for kind in KINDS:
            chosen = [word for word in words if word["kind"] == kind]
            if not chosen:
                continue
            pictures = [word["picture"] for word in chosen]
            shares = {
                m: estimate([float(w["drops"][m]) for w in chosen], pictures) for m in methods
            }
            gains = {
                m: estimate(
                    [float(w["drops"][m]) - float(w["drops"][RANDOM]) for w in chosen], pictures
                )
                for m in options.methods
            }
            drops[run][kind] = {
                "words": len(chosen),
                **{m: share.to_json() for m, share in shares.items()},
                "above random": {m: gain.to_json() for m, gain in gains.items()},
            }
            marks[run, kind] = shares
            rows.append([run, f"{kind} ({len(chosen)})", *(shares[m].show(100) for m in methods)])
    table = to_markdown(["run", "words", *methods], rows)
    data = {
        "drops": drops,
        "stop above object words": _stop_words_above(records),
        "models": models_of(records),
    }
    return Findings(table, _draw(marks, methods), data)


def _stop_words_above(records: Sequence[Record]) -> dict[str, Any]:
    """By LRP, for each run that said words of both kinds."""
    gaps = {
        run: gap_between(
            [word for word in words_of(of_run) if LRP in word["drops"]],
            lambda word: float(word["drops"][LRP]),
            lambda word: bool(word["kind"] == KINDS[0]),
        )
        for run, of_run in by_run(records).items()
    }
    return {run: gap.to_json() for run, gap in gaps.items() if gap.count}


def _draw(marks: dict[tuple[str, str], dict[str, Estimate]], methods: Sequence[str]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 0.7 * len(marks) + 1.6), layout="constrained")
    panel = figure.subplots()
    for row, shares in enumerate(marks.values()):
        for number, method in enumerate(methods):
            mark(panel, shares[method], row + 0.18 * number, f"C{number}", None if row else method)
    panel.set_yticks(range(len(marks)), [f"{run}\n{kind}" for run, kind in marks], fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("words that become less likely (%)")
    panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def above_random(data: dict[str, Any]) -> Answer:
    """Every method, for every kind of word and every run."""
    gains = {
        f"{run}, {kind}, {method}": Estimate.from_json(gain)
        for run, kinds in data["drops"].items()
        for kind, found in kinds.items()
        for method, gain in found["above random"].items()
    }
    sentences = [f"{name}: {gain.show(100, sign='+')} points" for name, gain in gains.items()]
    if not gains:
        return untested("No word of these captions comes late enough.")
    return judge([*gains.values()], "Above random deletions: " + "; ".join(sentences) + ".")


def stop_words_depend_more(data: dict[str, Any]) -> Answer:
    """By LRP."""
    parts = []
    for run, record in data["stop above object words"].items():
        gap = Estimate.from_json(record)
        kinds = data["drops"][run]
        stop, objects = (Estimate.from_json(kinds[kind][LRP]) for kind in KINDS)
        shares = f"{stop.show(100)} % of stop words, {objects.show(100)} % of object words"
        parts.append((gap, f"{run}: {shares}, {gap.show(100, sign='+')} points more"))
    return decide_all(parts, "No captioner here said words of both kinds late enough.")


def adaptive_relies_more(data: dict[str, Any]) -> Answer:
    """On previous words, by LRP: over runs, for words of both kinds."""
    shares: dict[str, list[list[float]]] = {}
    for model in ("adaptive_attention", "grid_td"):
        of_model = [data["drops"][run] for run in runs_of(data, model)]
        shares[model] = [
            [kinds[kind][LRP]["mean"] for kinds in of_model if LRP in kinds.get(kind, ())]
            for kind in KINDS
        ]
    gaps = [estimate_gap(*both) for both in zip(*shares.values(), strict=True)]
    if not all(gap.count for gap in gaps):
        return untested("No run of adaptive attention was compared with one of grid-TD.")
    words = ", ".join(
        f"{gap.show(100, sign='+')} points of {kind}" for gap, kind in zip(gaps, KINDS, strict=True)
    )
    return tell(gaps, f"Less likely with adaptive attention than with grid-TD: {words}.")


EXPERIMENT = Experiment(
    "paper4-table2",
    "Is a word less likely without the previous words that an explanation names?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 2",
            "Deleting the words that LRP or Grad* names lowers a word's probability more often "
            "than deleting random ones.",
            on_enough(above_random),
        ),
        Claim(
            "table 2",
            "Stop words depend on previous words more often than object words.",
            on_enough(stop_words_depend_more),
        ),
        Claim(
            "table 2",
            "Adaptive attention relies on previous words more than grid-TD.",
            on_enough(adaptive_relies_more),
        ),
    ),
)
