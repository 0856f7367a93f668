"""Paper 4, table 5: mean average precision of frequent object words; and CHAIR, which is ours.

The paper does not define its average precision. A word's occurrences are ranked by their
probability here; those that a reference says are true positives. Its precision, the share of true
positives, is shown beside it: the paper's numbers are near the shares that its table 3 implies.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.dataset import CaptionedImage
from sightline.errors import DataError
from sightline.experiments.captioned import (
    by_run,
    every_picture,
    label_caption,
    on_enough,
    words_of,
)
from sightline.experiments.claims import Answer, Claim, tell, untested
from sightline.experiments.estimate import estimate_gap, estimate_seeds
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.paper4_table4 import CONTROL, TREATED
from sightline.experiments.scored import estimated, findings_of, spoken
from sightline.metrics.chair import chair
from sightline.metrics.coco_objects import mentions
from sightline.metrics.score import Floats, Score


@dataclass(frozen=True)
class Options:
    """The paper takes words said more than 50 times on Flickr30k, more than 100 times on COCO."""

    said_more_than: int = 50


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        said = label_caption(subject.captioner, image)
        nouns = {thing.label.split()[-1] for thing in image.groundings}
        words = [
            {
                "word": said.caption.words[place].text,
                "right": right,
                "log_probability": said.caption.words[place].log_probability,
            }
            for place, right in said.right.items()
            if said.caption.words[place].text in nouns or mentions(said.caption.words[place].text)
        ]
        text = said.caption.text
        return {"words": words, "caption": text, "references": list(image.captions)}

    return every_picture(subjects, measure)


@dataclass(frozen=True, eq=False)
class MeanPrecision(Score):
    """The mean over words of their average precision, or of their precision."""

    # For each word: the picture of each occurrence, most probable first, and whether it is right.
    words: tuple[tuple[NDArray[np.int64], NDArray[np.bool_]], ...] = field(kw_only=True)
    ranked: bool = field(kw_only=True)

    def resampled(self, weights: Floats) -> Floats:
        values = []
        for pictures, right in self.words:
            drawn = weights[..., pictures]
            hits = drawn * right
            if self.ranked:
                precision = _divide(hits.cumsum(-1), drawn.cumsum(-1))
                average = _divide(np.nansum(hits * precision, -1), hits.sum(-1))
                # A word that is said and never right has no precision at any of its right ones: 0.
                values.append(np.where(drawn.sum(-1) > 0, np.nan_to_num(average), np.nan))
            else:
                values.append(_divide(hits.sum(-1), drawn.sum(-1)))
        # A draw without any occurrence of a word says nothing of it.
        stacked = np.stack(values)
        known = ~np.isnan(stacked)
        return _divide(np.where(known, stacked, 0).sum(0), known.sum(0).astype(float))


def _divide(one: Floats, other: Floats) -> Floats:
    undefined = np.full(np.broadcast(one, other).shape, np.nan)
    return np.asarray(np.divide(one, other, out=undefined, where=other > 0))


def mean_precision(words: Sequence[Record], pictures: int, ranked: bool) -> MeanPrecision:
    """Of words with their picture's number, their probability and whether they are right.

    >>> words = [
    ...     {"word": "dog", "number": n, "log_probability": -n, "right": n != 1} for n in range(3)
    ... ]
    >>> round(mean_precision(words, 3, True).corpus, 4)  # (1/1 + 2/3) / 2
    0.8333
    >>> round(mean_precision(words, 3, False).corpus, 4)
    0.6667
    """
    groups = []
    for name in dict.fromkeys(word["word"] for word in words):
        of_word = sorted(
            (word for word in words if word["word"] == name), key=lambda w: -w["log_probability"]
        )
        groups.append(
            (
                np.array([word["number"] for word in of_word], np.int64),
                np.array([word["right"] for word in of_word], np.bool_),
            )
        )
    name = "mAP" if ranked else "mean precision"
    score = MeanPrecision(
        name, np.nan, np.full(pictures, np.nan), words=tuple(groups), ranked=ranked
    )
    object.__setattr__(score, "corpus", float(score.resampled(np.ones(pictures))))
    return score


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows, counts = {}, {}
    for run, of_run in by_run(records).items():
        numbers = {record["picture"]: number for number, record in enumerate(of_run)}
        words = [{**word, "number": numbers[word["picture"]]} for word in words_of(of_run)]
        often = Counter(word["word"] for word in words)
        words = [word for word in words if often[word["word"]] > options.said_more_than]
        if not words:
            raise DataError(
                f"{run}: no object word is said more than {options.said_more_than} times; give "
                "more pictures, or a lower --set said_more_than"
            )
        scores = [mean_precision(words, len(of_run), ranked) for ranked in (True, False)]
        rows[run] = {score.name: estimated(score) for score in (*scores, *chair(*spoken(of_run)))}
        counts[run] = {word: often[word] for word in dict.fromkeys(w["word"] for w in words)}
    return findings_of(rows, records, words=counts)


def gains_of(data: dict[str, Any], model: str | None = None) -> list[float]:
    """What the mAP of each run tuned by LRP-inference is above that of its control.

    Runs are named as `paper4-table4` names them, with anything before: `control-0` and
    `lrp-inference-0` have the seed in common. `model` names the captioner that counts.

    >>> rows = {f"{arm}-0": {"mAP": {"mean": m}} for arm, m in ((CONTROL, 0.5), (TREATED, 0.75))}
    >>> gains_of({"rows": rows, "models": dict.fromkeys(rows, "grid_td")}, "grid_td")
    [0.25]
    """
    rows, models = data["rows"], data["models"]
    pairs = [(run, run.replace(TREATED, CONTROL)) for run in rows if TREATED in run]
    return [
        rows[run]["mAP"]["mean"] - rows[control]["mAP"]["mean"]
        for run, control in pairs
        if control in rows and model in (None, models[run])
    ]


NO_PAIR = "No run tuned by LRP-inference was compared with a control."


def is_more_precise(data: dict[str, Any]) -> Answer:
    gains = gains_of(data)
    if not gains:
        return untested(NO_PAIR)
    gain = estimate_seeds(gains)
    return tell([gain], f"{gain.show(100, sign='+')} points of mAP above the control.")


def adaptive_gains_more(data: dict[str, Any]) -> Answer:
    adaptive, grid = (gains_of(data, model) for model in ("adaptive_attention", "grid_td"))
    if not adaptive or not grid:
        return untested(NO_PAIR.replace(" was", " of each of the two captioners was"))
    more = estimate_gap(adaptive, grid)
    return tell([more], f"The gain is {more.show(100, sign='+')} points of mAP above grid-TD's.")


EXPERIMENT = Experiment(
    "paper4-table5",
    "How often are the objects that captions name really there?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "table 5",
            "LRP-inference raises the mAP of frequent object words: they are made up less often.",
            on_enough(is_more_precise),
        ),
        Claim(
            "table 5",
            "It raises it more for adaptive attention than for grid-TD.",
            on_enough(adaptive_gains_more),
        ),
    ),
)
