"""Paper 0, figure 7: captions of two runs side by side, and which is more accurate and richer.

Cases are not chosen by hand: they are the first pictures whose captions differ.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.config import require_at_least
from sightline.data.dataset import CaptionedImage
from sightline.experiments.captioned import by_run, caption_of, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, tell, untested
from sightline.experiments.estimate import to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import keep_picture, kept_picture, no_pictures, write_words
from sightline.experiments.masks import ALIGNED, mean_masks, where_masks_work
from sightline.experiments.options import GalleryOptions
from sightline.experiments.scored import Scores, estimated, gaps_in, models_of, spoken
from sightline.metrics.score import Score
from sightline.metrics.word_labels import label_words, wrong_words
from sightline.text.stop_words import STOP_WORDS

WRONG, RICH = "wrong words", "content words"


@dataclass(frozen=True)
class Options(GalleryOptions):
    """How many cases are drawn, and among how many of the first pictures they are looked for."""

    shown: int = 6
    among: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, "among", among=self.among)


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        picture, caption = caption_of(subject.captioner, image)
        kept = keep_picture(picture.image) if number < options.among else None
        return {"caption": caption.text, "references": list(image.captions), "image": kept}

    return every_picture(subjects, measure)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    scores: Scores = {}
    for run, of_run in by_run(records).items():
        captions, references = spoken(of_run)
        counts = np.array([float(len(content_words(caption))) for caption in captions])
        rich = Score(RICH, float(counts.mean()), counts)
        scores[run] = {WRONG: wrong_words(captions, references), RICH: rich}
    rows = {run: {name: estimated(s) for name, s in of.items()} for run, of in scores.items()}
    models = models_of(records)
    table = to_markdown(
        ["run", "model", "captions", "content words that no reference says (%)", "content words"],
        [
            [run, models[run], str(of[RICH].count), of[WRONG].show(100), of[RICH].show(digits=2)]
            for run, of in rows.items()
        ],
    )
    data = {
        "rows": {run: {name: e.to_json() for name, e in of.items()} for run, of in rows.items()},
        "models": models,
        "masks": mean_masks(records),
    }
    return Findings(table, _draw(cases_of(records)[: options.shown]), data)


def content_words(caption: str) -> list[str]:
    """The words that say something.

    >>> content_words("a red dog on the grass")
    ['red', 'dog', 'grass']
    """
    return [word for word in caption.split() if word not in STOP_WORDS]


def cases_of(records: Sequence[Record]) -> list[list[Record]]:
    """For each picture whose captions differ, its records of all runs, in their order."""
    runs = by_run(records)
    pictures: dict[str, list[Record]] = {}
    for record in records:
        if record["image"] is not None:
            pictures.setdefault(record["picture"], []).append(record)
    return [
        case
        for case in pictures.values()
        if len(case) == len(runs) and len({record["caption"] for record in case}) > 1
    ]


def _draw(cases: Sequence[Sequence[Record]]) -> Any:
    """Picture, first reference and captions; words that no reference says are red."""
    from matplotlib.figure import Figure

    if not cases:
        return no_pictures("no two runs caption one of these pictures differently")
    figure = Figure(figsize=(8.4, 1.7 * len(cases)), layout="constrained")
    grid = figure.subplots(len(cases), 2, squeeze=False, width_ratios=[1, 4])
    for (left, right), case in zip(grid, cases, strict=True):
        for panel in (left, right):
            panel.axis("off")
        left.imshow(kept_picture(case[0]["image"]))
        lines = [[("GT:", "grey"), *((w, "grey") for w in case[0]["references"][0].split())]]
        for record in case:
            words = record["caption"].split()
            labels = label_words(words, record["references"])
            colours = [
                "black" if label or word in STOP_WORDS else "#c62828"
                for word, label in zip(words, labels, strict=True)
            ]
            lines.append([(f"{record['run']}:", "#1565c0"), *zip(words, colours, strict=True)])
        write_words(right, lines, width=84)
    return figure


def is_more_accurate_and_richer(data: dict[str, Any]) -> Answer:
    """Fewer wrong words and more content words than without alignment."""
    models = (ALIGNED, "transformer")
    gaps = [gap for name in (WRONG, RICH) for gap in gaps_in(data, name, *models).values()]
    if not gaps:
        return untested("No run with alignment was compared with a plain Transformer.")
    wrong, rich = gaps
    sentence = (
        f"With alignment {wrong.show(100, sign='+')} points of wrong words, "
        f"{rich.show(digits=2, sign='+')} content words a caption."
    )
    return tell([-wrong, rich], sentence)


EXPERIMENT = Experiment(
    "paper0-figure7",
    "How do the captions of runs differ, picture by picture?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "section 5.5",
            "Captions of the A² Transformer are more accurate and richer than the Transformer's.",
            on_enough(where_masks_work(is_more_accurate_and_richer)),
        ),
    ),
)
