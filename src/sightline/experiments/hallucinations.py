"""Hallucinated words and what explanations show of them: the parts of paper 4's figures 4 and 5."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sightline.data.dataset import CaptionedImage
from sightline.experiments.captioned import (
    by_right,
    by_run,
    gap_between,
    label_caption,
    words_of,
    wrong_cells,
)
from sightline.experiments.claims import Answer, judge, untested
from sightline.experiments.estimate import Estimate, to_markdown
from sightline.experiments.experiment import Record, Subject
from sightline.experiments.gallery import keep_heatmap, keep_picture
from sightline.explanation import Explanation

LRP = "lrp"


def explain_words(subject: Subject, image: CaptionedImage, methods: Sequence[str]) -> Record:
    """The sign of every content word's evidence; of wrong words their maps, too."""
    captioner = subject.captioner
    said = label_caption(captioner, image)
    places = list(said.right)
    words: list[Record] = []
    relevance = (
        captioner.explain(said.picture, said.caption, words=places, method=LRP) if places else []
    )
    for place, why in zip(places, relevance, strict=True):
        word = said.caption.words[place]
        words.append(
            {
                "word": word.text,
                "right": said.right[place],
                "log_probability": word.log_probability,
                "positive": positive_share(why),
            }
        )
    wrong = [n for n, place in enumerate(places) if not said.right[place]]
    for method in methods if wrong else ():
        chosen = (
            [relevance[n] for n in wrong]
            if method == LRP
            else captioner.explain(
                said.picture, said.caption, words=[places[n] for n in wrong], method=method
            )
        )
        for n, why in zip(wrong, chosen, strict=True):
            assert why.heatmap is not None
            words[n].setdefault("maps", {})[method] = keep_heatmap(why.heatmap)
    for n in wrong:
        words[n]["bands"] = previous_words(relevance[n], [w.text for w in said.caption.words])
    return {"words": words, "image": keep_picture(said.picture.image) if wrong else None}


def positive_share(why: Explanation) -> float:
    """The share of the regions' relevance, signs aside, that speaks for the word.

    >>> box = (0.0, 0.0, 1.0, 1.0)
    >>> regions, words = np.float32([3, -1]), np.float32([0])
    >>> positive_share(Explanation("lrp", "cat", 0, 2.0, regions, (box, box), ("<start>",), words))
    0.75
    """
    return float(why.regions.clip(0).sum() / max(np.abs(why.regions).sum(), 1e-12))


def previous_words(why: Explanation, words: Sequence[str]) -> list[tuple[str, float | None]]:
    """The caption's words with the relevance of those before the target, its largest being 1."""
    relevance = why.words[1:]
    largest = max(float(np.abs(relevance).max(initial=0.0)), 1e-12)
    return [
        (word, float(relevance[place]) / largest if place < len(relevance) else None)
        for place, word in enumerate(words)
    ]


def tabulate(records: Sequence[Record]) -> tuple[str, dict[str, Any], list[Record]]:
    """The table, its numbers, and the wrong words with all that can be drawn of them."""
    rows, numbers, cells = [], {}, []
    for run, of_run in by_run(records).items():
        words = words_of(of_run)
        shares = by_right(words, lambda word: word["positive"])
        rows.append(
            [run, *(f"{share.show(100)}, {share.count} words" for share in shares.values())]
        )
        numbers[run] = {kind: share.to_json() for kind, share in shares.items()}
        gap = gap_between(words, lambda word: word["positive"], lambda word: word["right"])
        numbers[run]["right - wrong"] = gap.to_json()
        cells += wrong_cells(run, of_run)
    header = ["run", "relevance of regions that is positive (%), right words", "wrong words"]
    return to_markdown(header, rows), numbers, cells


def mostly_negative(data: dict[str, Any]) -> Answer:
    """Less than half of a wrong word's relevance is positive, and less than of right words."""
    gains, parts = [], []
    for run, shares in data["positive"].items():
        right, wrong = (Estimate.from_json(shares[kind]) for kind in ("right", "wrong"))
        if wrong.count:
            parts.append(f"{run}: {wrong.show(100)} % positive, of right words {right.show(100)} %")
            gains += [(-wrong).shifted(0.5), Estimate.from_json(shares["right - wrong"])]
    if not parts:
        return untested("No word of these captions is wrong by the references.")
    return judge(gains, "; ".join(parts) + ".")
