"""Paper 1, figures 2 and 3: what soft and hard attention look at, word by word.

Hard attention is drawn twice: its distribution α over regions, and one region drawn from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.captions import spread
from sightline.data.dataset import CaptionedImage
from sightline.evaluation.distributions import entropy
from sightline.evaluation.grounding import grounded_words
from sightline.experiments.captioned import by_run, caption_of, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, judge, untested
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import (
    attention_map,
    keep_heatmap,
    keep_picture,
    no_pictures,
    show_heatmap,
)
from sightline.experiments.grounded import attention_inside
from sightline.experiments.options import GalleryOptions

HARD = "hard_attention"


@dataclass(frozen=True)
class Options(GalleryOptions):
    """How many pictures of each run are drawn."""

    shown: int = 2


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        picture, caption = caption_of(captioner, image)
        boxes = grounded_words([word.text for word in caption.words], image)
        draw = np.random.default_rng(number)
        words: list[Record] = []
        for place, word in enumerate(caption.words):
            record: Record = {"word": word.text, "entropy": entropy(word.attention)}
            if place in boxes:
                record["inside"], record["area"] = attention_inside(caption, place, boxes[place])
            if number < options.shown:
                record["attention"] = attention_map(caption, place)
            if number < options.shown and subject.model == HARD:
                weights = np.array(word.attention, np.float64)
                chosen = draw.choice(len(weights), p=weights / weights.sum())
                sample = np.eye(len(weights))[chosen].tolist()
                record["sample"] = keep_heatmap(spread(sample, caption.boxes, 112, 112))
            words.append(record)
        shown = keep_picture(picture.image) if number < options.shown else None
        return {"words": words, "caption": caption.text, "image": shown}

    return every_picture(subjects, measure)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows, numbers = [], {}
    for run, of_run in by_run(records).items():
        words = [(r["picture"], word) for r in of_run for word in r["words"]]
        located = [(picture, word) for picture, word in words if "inside" in word]
        bits = estimate([w["entropy"] for _, w in words], [p for p, _ in words])
        above = estimate([w["inside"] - w["area"] for _, w in located], [p for p, _ in located])
        rows.append(
            [run, of_run[0]["model"], str(len(words)), bits.show(), above.show(100, sign="+")]
        )
        numbers[run] = {
            "model": of_run[0]["model"],
            "entropy": bits.to_json(),
            "inside": above.to_json(),
        }
    header = ["run", "model", "words", "bits of attention", "inside the box, above its area"]
    shown = [record for record in records if record["image"] is not None]
    return Findings(to_markdown(header, rows), _draw(shown), {"runs": numbers})


def _draw(records: Sequence[Record]) -> Any:
    from matplotlib.figure import Figure

    lines = []  # (what, record, key)
    for record in records:
        lines.append((record["run"], record, "attention"))
        if record["model"] == HARD:
            lines.append((f"{record['run']}, a draw", record, "sample"))
    if not lines:
        return no_pictures("no picture was to be drawn")
    columns = max(len(record["words"]) for _, record, _ in lines)
    figure = Figure(figsize=(1.3 * max(columns, 3), 1.6 * len(lines)), layout="constrained")
    for panels, (name, record, key) in zip(
        figure.subplots(len(lines), max(columns, 1), squeeze=False), lines, strict=True
    ):
        for panel in panels:
            panel.axis("off")
        for panel, word in zip(panels, record["words"], strict=False):
            show_heatmap(panel, record["image"], word[key])
            panel.set_title(word["word"], fontsize=7)
        panels[0].text(0, -0.08, name, fontsize=7, transform=panels[0].transAxes, va="top")
    return figure


def looks_at_objects(data: dict[str, Any]) -> Answer:
    """Figure 3: of words that name something with boxes, more attention inside than by chance."""
    shares = {run: Estimate.from_json(of["inside"]) for run, of in data["runs"].items()}
    known = {run: share for run, share in shares.items() if share.count}
    if not known:
        return untested("No word of these captions names something with a box.")
    sentences = [f"{run}: {share.show(100, sign='+')} points" for run, share in known.items()]
    sentence = "Inside the box, above its area: " + "; ".join(sentences) + "."
    return judge([*known.values()], sentence)


EXPERIMENT = Experiment(
    "paper1-figure2",
    "What do soft and hard attention look at, word by word?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "figure 3", "Attention is on the object that a word names.", on_enough(looks_at_objects)
        ),
    ),
)
