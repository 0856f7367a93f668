"""Paper 1, figure 5: wrong words, and where the captioner looked when it said them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.captions import Caption
from sightline.data.dataset import CaptionedImage
from sightline.experiments.captioned import by_run, every_picture, label_caption, words_of
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.estimate import estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import (
    choose,
    keep_heatmap,
    keep_picture,
    no_pictures,
    show_heatmap,
)


@dataclass(frozen=True)
class Options:
    """How many wrong words are drawn."""

    shown: int = 12


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        said = label_caption(subject.captioner, image)
        words: list[Record] = []
        for place, right in said.right.items():
            word = said.caption.words[place]
            record: Record = {
                "word": word.text,
                "right": right,
                "log_probability": word.log_probability,
                "entropy": entropy(word.attention),
            }
            if not right:
                record |= {
                    "caption": said.caption.text,
                    "attention": attention_map(said.caption, place),
                }
            words.append(record)
        wrong = any(not word["right"] for word in words)
        return {"words": words, "image": keep_picture(said.picture.image) if wrong else None}

    return every_picture(subjects, measure)


def attention_map(caption: Caption, place: int) -> list[list[float]]:
    """What is kept of where a word looked."""
    return keep_heatmap(caption.attention_map(place, 112, 112))


def entropy(attention: Sequence[float]) -> float:
    """Of a word's attention, in bits: 0 where it looks at one region.

    >>> entropy([0.5, 0.5, 0.0])
    1.0
    """
    weights = np.array([weight for weight in attention if weight > 0])
    weights = weights / max(weights.sum(), 1e-12)
    return float(-(weights * np.log2(weights)).sum()) + 0.0


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows, numbers, cells = [], {}, []
    for run, of_run in by_run(records).items():
        words = words_of(of_run)
        of_kind = {
            kind: [word for word in words if word["right"] == right]
            for kind, right in (("right", True), ("wrong", False))
        }
        bits = {
            kind: estimate([w["entropy"] for w in some], [w["picture"] for w in some])
            for kind, some in of_kind.items()
        }
        share = estimate([float(not w["right"]) for w in words], [w["picture"] for w in words])
        rows.append([run, str(len(words)), share.show(100), *(bits[kind].show() for kind in bits)])
        numbers[run] = {
            "wrong": share.to_json(),
            "entropy": {kind: e.to_json() for kind, e in bits.items()},
        }
        images = {record["picture"]: record["image"] for record in of_run}
        cells += [{**w, "run": run, "image": images[w["picture"]]} for w in of_kind["wrong"]]
    header = ["run", "words", "wrong (%)", "bits of attention, right", "bits, wrong"]
    figure = draw(choose(cells, options.shown))
    return Findings(to_markdown(header, rows), figure, {"runs": numbers})


def draw(cells: Sequence[Record]) -> Any:
    from matplotlib.figure import Figure

    if not cells:
        return no_pictures("no word of these captions is wrong by the references")
    columns = min(len(cells), 4)
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    for panel, cell in zip(panels, cells, strict=False):
        show_heatmap(panel, cell["image"], cell["attention"])
        title = f"{cell['word']} ({np.exp(cell['log_probability']):.0%})\n{cell['caption'][:38]}"
        panel.set_title(title, fontsize=7)
    return figure


def needs_people(data: dict[str, Any]) -> Answer:
    return untested(
        "The figure shows wrong words; whether it explains them is for people to judge, and "
        "nobody was asked."
    )


EXPERIMENT = Experiment(
    "paper1-figure5",
    "Where did the captioner look when it said a wrong word?",
    Options,
    tasks,
    conclude,
    (Claim("figure 5", "Attention gives an intuition why mistakes were made.", needs_people),),
)
