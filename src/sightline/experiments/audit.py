"""How good an audit is: words that people wrote against words that were swapped for others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.captioner import Captioner
from sightline.captions import NOT_SUPPORTED, Caption
from sightline.data.dataset import CaptionedImage, captions_of
from sightline.errors import DataError
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Subject, Task
from sightline.kept_records import Record
from sightline.metrics.auc import auc
from sightline.metrics.bootstrap import interval
from sightline.metrics.score import number
from sightline.support.swaps import Swapper
from sightline.text.tokenizer import tokenize
from sightline.text.word_kinds import KINDS, kind

HUMAN, SWAPPED, OTHER = "human", "swapped", "other"


@dataclass(frozen=True)
class Options:
    """Which words are drawn."""

    seed: int = 0


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    for subject in subjects:
        images = [image for image in subject.images if any(map(tokenize, image.captions))]
        if len(images) < 2:
            raise DataError("an audit is measured on at least two pictures with captions")
        swapper = Swapper(captions_of(images))
        for n, image in enumerate(images):
            other = images[(n + len(images) // 2) % len(images)]
            yield Task(
                f"{subject.name}/{image.name}",
                lambda subject=subject, image=image, other=other, n=n, swapper=swapper: {  # type: ignore[misc]
                    "run": subject.name,
                    "picture": image.name,
                    "captions": _measure(
                        subject.captioner, image, other, swapper, options.seed * 1_000_003 + n
                    ),
                },
            )


def _measure(
    captioner: Captioner, image: CaptionedImage, other: CaptionedImage, swapper: Swapper, seed: int
) -> list[Record]:
    """One caption of a picture, the same with a word of each kind swapped, and one of another."""
    texts, others = ([text for text in each.captions if tokenize(text)] for each in (image, other))
    said = texts[seed % len(texts)]
    given: list[tuple[str, str, int | None, str | None]] = [(HUMAN, said, None, None)]
    for swap in swapper.swaps(said, texts, seed):
        given.append((SWAPPED, " ".join(swap.words), swap.place, swap.kind))
    given.append((OTHER, others[seed % len(others)], None, None))
    picture = captioner.encode(captioner.open(image.picture))
    read = [captioner.read(picture, text, alternatives=1) for _, text, _, _ in given]
    checked = captioner.check([picture] * len(read), read)
    return [
        {"source": source, "place": place, "kind": of_kind, "words": _words(caption)}
        for (source, _, place, of_kind), caption in zip(given, checked, strict=True)
    ]


def _words(caption: Caption) -> list[Record]:
    """The content words that the judge knows."""
    return [
        {
            "place": place,
            "kind": kind(word.text),
            "support": word.support.score,
            "marked": word.support.verdict == NOT_SUPPORTED,
        }
        for place, word in enumerate(caption.words)
        if word.support is not None and word.read_as is None
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    data: dict[str, Any] = {}
    rows = []
    for run in dict.fromkeys(record["run"] for record in records):
        some = [record for record in records if record["run"] == run]
        data[run] = {
            "pictures": len(some),
            "kinds": {name: _kind(some, name) for name in (*KINDS, "all")},
            "captions": _captions(some),
        }
        for name, row in data[run]["kinds"].items():
            rows.append([run, name, str(row["swapped"]), *map(_show, _columns(row))])
        row = data[run]["captions"]
        marked = (row["auc"], None, None, row["other_marked"], row["human_marked"])
        rows.append([run, "whole captions", str(row["captions"]), *map(_show, marked)])
    header = [
        *("run", "swapped", "number", "AUC", "one mark a caption hits it", "by chance"),
        *("swapped, marked (%)", "by people, marked (%)"),
    ]
    return Findings(to_markdown(header, rows), _draw(data), {"runs": data})


def _kind(records: Sequence[Record], name: str) -> dict[str, Any]:
    """Words of a kind: swapped ones against those that people wrote."""
    support, right, pictures = [], [], []
    marks: dict[bool, tuple[list[float], list[int]]] = {False: ([], []), True: ([], [])}
    hits, chances, of_hit = [], [], []
    for n, record in enumerate(records):
        for caption in record["captions"]:
            if caption["source"] == OTHER:
                continue
            swapped = caption["source"] == SWAPPED
            words = caption["words"]
            for word in words:
                counted = word["place"] == caption["place"] if swapped else True
                if counted and name in (word["kind"], "all"):
                    support.append(word["support"])
                    right.append(not swapped)
                    pictures.append(n)
                    marks[swapped][0].append(float(word["marked"]))
                    marks[swapped][1].append(n)
            known = any(word["place"] == caption["place"] for word in words)
            if swapped and known and name in (caption["kind"], "all"):
                first = min(words, key=lambda word: word["support"])
                hits.append(float(first["place"] == caption["place"]))
                chances.append(1 / len(words))
                of_hit.append(n)
    return {
        "swapped": len(hits),
        "by_people": len(marks[False][0]),
        "auc": _auc(support, right, pictures),
        "hit": estimate(hits, of_hit).to_json(),
        "chance": estimate(chances, of_hit).to_json(),
        "swapped_marked": estimate(*marks[True]).to_json(),
        "human_marked": estimate(*marks[False]).to_json(),
    }


def _captions(records: Sequence[Record]) -> dict[str, Any]:
    """Captions of other pictures against those of the picture, by their words' mean support."""
    support, right, pictures = [], [], []
    marked: dict[str, list[float]] = {HUMAN: [], OTHER: []}
    where: dict[str, list[int]] = {HUMAN: [], OTHER: []}
    for n, record in enumerate(records):
        for caption in record["captions"]:
            if caption["source"] == SWAPPED or not caption["words"]:
                continue
            support.append(float(np.mean([word["support"] for word in caption["words"]])))
            right.append(caption["source"] == HUMAN)
            pictures.append(n)
            marked[caption["source"]].append(float(any(w["marked"] for w in caption["words"])))
            where[caption["source"]].append(n)
    return {
        "captions": len(marked[OTHER]),
        "auc": _auc(support, right, pictures),
        "human_marked": estimate(marked[HUMAN], where[HUMAN]).to_json(),
        "other_marked": estimate(marked[OTHER], where[OTHER]).to_json(),
    }


def _auc(support: list[float], right: list[bool], pictures: list[int]) -> dict[str, Any]:
    if len(set(right)) < 2:  # nothing was swapped, or nothing was not
        return {"mean": None, "low": None, "high": None}
    score = auc(support, right, pictures)
    low, high = interval(score)
    return {"mean": number(score.corpus), "low": number(low), "high": number(high)}


def _columns(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [row[name] for name in ("auc", "hit", "chance", "swapped_marked", "human_marked")]


def _show(value: dict[str, Any] | None) -> str:
    """A share in percent with its interval; of an AUC, too."""
    return "-" if value is None else Estimate.from_json({"count": 1, **value}).show(100)


def _draw(data: dict[str, Any]) -> Any:
    """The AUC of each kind, with the bar for objects."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    panel = figure.subplots()
    names = [*KINDS, "all", "whole captions"]
    for shift, (run, found) in enumerate(data.items()):
        rows = {**{n: row["auc"] for n, row in found["kinds"].items()}}
        rows["whole captions"] = found["captions"]["auc"]
        points = [(n, rows[name]) for n, name in enumerate(names) if rows[name]["low"] is not None]
        places = [n + 0.15 * shift for n, _ in points]
        means = [row["mean"] for _, row in points]
        errors = [
            [row["mean"] - row["low"] for _, row in points],
            [row["high"] - row["mean"] for _, row in points],
        ]
        panel.errorbar(places, means, errors, fmt="o", capsize=3, label=run)
    panel.axhline(0.85, color="grey", linewidth=1, linestyle="--", label="bar for objects")
    panel.axhline(0.5, color="grey", linewidth=1, linestyle=":", label="chance")
    panel.set_xticks(range(len(names)), names, rotation=20)
    panel.set_ylabel("AUC")
    panel.legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    "audit",
    "Does the audit find words that were swapped, and spare those that people wrote?",
    Options,
    tasks,
    conclude,
)
