"""Paper 4, table 3: do explanations tell hallucinated words from right ones?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.data.dataset import CaptionedImage
from sightline.errors import DataError
from sightline.experiments.captioned import (
    by_run,
    every_picture,
    label_caption,
    on_enough,
    words_of,
)
from sightline.experiments.claims import Answer, Claim, decide_all, not_kept
from sightline.experiments.estimate import Estimate
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.options import MethodOptions
from sightline.experiments.scored import Rows, difference, estimated, findings_of, mark
from sightline.explanation import Explanation
from sightline.metrics.auc import auc

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options(MethodOptions):
    """Which words count: the paper takes those that are said more than 50 times."""

    methods: tuple[str, ...] = ("lrp", "guided_grad_cam", "attention")
    said_more_than: int = 50


COMPARED = (
    ("L.", "attention max"),
    ("L.", "G.-abs"),
    ("G.-abs", "1 - beta"),
    ("1 - beta", "attention max"),
)
"""Scores that the paper orders, the better one first."""


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        said = label_caption(captioner, image)
        places = list(said.right)
        words: list[Record] = []
        for place, right in said.right.items():
            word = said.caption.words[place]
            scores = {"log-probability": word.log_probability, **_gate(word.signals)}
            words.append({"word": word.text, "right": right, "scores": scores})
        for method in options.methods if places else ():
            explanations = captioner.explain(
                said.picture, said.caption, words=places, method=method
            )
            for record, why in zip(words, explanations, strict=True):
                record["scores"] |= scores_of(why)
        return {"words": words}

    return every_picture(subjects, measure)


def _gate(signals: dict[str, float]) -> dict[str, float]:
    """How far the picture is let in: 1 - β of paper 4, where there is a sentinel."""
    return {"1 - beta": 1 - signals["sentinel"]} if "sentinel" in signals else {}


def scores_of(why: Explanation) -> dict[str, float]:
    """The paper's scores of a word. Of LRP and attention at the regions, whose sum is the same."""
    if why.method == "guided_grad_cam":
        assert why.heatmap is not None
        pixels = why.heatmap.astype(np.float64)
        return {"G.": float(pixels.mean()), "G.-abs": float(np.abs(pixels).mean())}
    values = why.regions.astype(np.float64)
    if why.method == "attention":  # its mean is the same for every word
        return {"attention max": float(values.max())}
    name = "L." if why.method == "lrp" else why.method
    return {name: float(values.mean()), f"{name}-max": float(values.max())}


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows: dict[str, dict[str, Estimate]] = {}
    leads: dict[str, dict[str, Any]] = {}
    counts = {}
    for run, of_run in by_run(records).items():
        words = words_of(of_run)
        often = Counter(word["word"] for word in words)
        words = [word for word in words if often[word["word"]] > options.said_more_than]
        right = [bool(word["right"]) for word in words]
        if len(set(right)) < 2:
            raise DataError(
                f"{run}: of the words said more than {options.said_more_than} times, "
                f"{sum(right)} are right and {len(right) - sum(right)} wrong, so they cannot be "
                "told apart; give more pictures, or --set said_more_than=0"
            )
        numbers = {name: n for n, name in enumerate(dict.fromkeys(w["picture"] for w in words))}
        pictures = [numbers[word["picture"]] for word in words]
        areas = {
            name: auc([word["scores"][name] for word in words], right, pictures)
            for name in words[0]["scores"]
        }
        rows[run] = {name: estimated(area) for name, area in areas.items()}
        leads[run] = {
            f"{high} - {low}": difference(areas[high], areas[low]).to_json()
            for high, low in COMPARED
            if high in areas and low in areas
        }
        counts[run] = {"right": sum(right), "wrong": len(right) - sum(right)}
    findings = findings_of(rows, records, words=counts, leads=leads)
    return replace(findings, figure=draw(rows))


def draw(rows: Rows) -> "Figure":
    """All scores side by side, since they are areas under the same kind of curve."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for of_run in rows.values() for name in of_run))
    figure = Figure(figsize=(6, 0.35 * len(names) * len(rows) + 1.2), layout="constrained")
    panel = figure.subplots()
    for number, (run, of_run) in enumerate(rows.items()):
        below = 0.6 * ((number + 0.5) / len(rows) - 0.5)  # runs one below the other
        for name, value in of_run.items():
            label = run if name == next(iter(of_run)) else None
            mark(panel, value, names.index(name) + below, f"C{number}", label)
    panel.axvline(50, color="gray", linewidth=1, linestyle=":")
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.set_xlabel("AUC in percent: right words above hallucinated ones; 50 is chance")
    panel.legend(fontsize=8)
    return figure


def _ordered(data: dict[str, Any], high: str, low: str) -> Answer:
    parts = []
    for run, row in data["rows"].items():
        if f"{high} - {low}" in data["leads"][run]:
            one, other = Estimate.from_json(row[high]), Estimate.from_json(row[low])
            lead = Estimate.from_json(data["leads"][run][f"{high} - {low}"])
            words = (
                f"{run}: {high} {one.mean:.2f}, {low} {other.mean:.2f}, "
                f"difference {lead.show(digits=2, sign='+')} "
                f"({data['words'][run]['right']} right words, {data['words'][run]['wrong']} wrong)"
            )
            parts.append((lead, words))
    if not parts and any(high in row and low in row for row in data["rows"].values()):
        return not_kept(f"the difference of {high} and {low}")
    return decide_all(parts, f"No captioner here has both {high} and {low}.")


EXPERIMENT = Experiment(
    "paper4-table3",
    "Do explanations tell hallucinated words from right ones?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 3",
            "LRP identifies hallucinated words better than attention.",
            on_enough(lambda data: _ordered(data, "L.", "attention max")),
        ),
        Claim(
            "table 3",
            "LRP does it better than the absolute value of Guided Grad-CAM.",
            on_enough(lambda data: _ordered(data, "L.", "G.-abs")),
        ),
        Claim(
            "table 3",
            "The absolute value of Guided Grad-CAM does it better than 1 - β.",
            on_enough(lambda data: _ordered(data, "G.-abs", "1 - beta")),
        ),
        Claim(
            "table 3",
            "1 - β does it better than attention.",
            on_enough(lambda data: _ordered(data, "1 - beta", "attention max")),
        ),
    ),
)
