"""Paper 1, figure 5: wrong words, and where the captioner looked when it said them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sightline.data.dataset import CaptionedImage
from sightline.evaluation.distributions import entropy
from sightline.experiments.captioned import (
    by_right,
    by_run,
    every_picture,
    label_caption,
    words_of,
    wrong_cells,
)
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.estimate import estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import attention_map, choose, draw_words, keep_picture
from sightline.experiments.options import GalleryOptions


def tasks(subjects: Sequence[Subject], options: GalleryOptions) -> Iterator[Task]:
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


def conclude(records: Sequence[Record], options: GalleryOptions) -> Findings:
    rows, numbers, cells = [], {}, []
    for run, of_run in by_run(records).items():
        words = words_of(of_run)
        bits = by_right(words, lambda word: word["entropy"])
        share = estimate([float(not w["right"]) for w in words], [w["picture"] for w in words])
        rows.append([run, str(len(words)), share.show(100), *(bits[kind].show() for kind in bits)])
        numbers[run] = {
            "wrong": share.to_json(),
            "entropy": {kind: e.to_json() for kind, e in bits.items()},
        }
        cells += wrong_cells(run, of_run)
    header = ["run", "words", "wrong (%)", "bits of attention, right", "bits, wrong"]
    figure = draw_words(choose(cells, options.shown), lambda cell: cell["attention"], _title)
    return Findings(to_markdown(header, rows), figure, {"runs": numbers})


def _title(cell: Record) -> str:
    return f"{cell['word']} ({np.exp(cell['log_probability']):.0%})\n{cell['caption'][:38]}"


def needs_people(data: dict[str, Any]) -> Answer:
    return untested(
        "The figure shows wrong words; whether it explains them is for people to judge, and "
        "nobody was asked."
    )


EXPERIMENT = Experiment(
    "paper1-figure5",
    "Where did the captioner look when it said a wrong word?",
    GalleryOptions,
    tasks,
    conclude,
    (Claim("figure 5", "Attention gives an intuition why mistakes were made.", needs_people),),
)
