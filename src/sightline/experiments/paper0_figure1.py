"""Paper 0, figure 1: the region that each word looks at most, before and after alignment.

Before is α and after is the aligned attention, of one captioner in one layer; heads are averaged.
A region counts as on the object if its middle is in a box of what the word names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.data.dataset import Box, CaptionedImage
from sightline.errors import ConfigError
from sightline.evaluation.grounding import grounded_words
from sightline.experiments.captioned import by_run, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, decide_all, untested
from sightline.experiments.estimate import Estimate, estimate, rows_to_json, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import keep_picture, kept_picture, no_pictures
from sightline.experiments.masks import mean_masks, outside
from sightline.experiments.options import GalleryOptions
from sightline.experiments.transformer_words import (
    caption_attention,
    require_masks,
)

COLOURS = {"before": "#1565c0", "after": "#c62828"}  # as in the paper


@dataclass(frozen=True)
class Options(GalleryOptions):
    """How many pictures of each run are drawn, and of which decoder layer."""

    shown: int = 3
    layer: int | None = None  # from 1; default: the last


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        seen = caption_attention(subject.captioner, image)
        masks = require_masks(seen, subject)
        layer = _layer(options, seen.attention.shape[1])
        regions = seen.picture.regions
        boxes = regions.boxes[0, regions.mask[0]].tolist()
        named = grounded_words([word.text for word in seen.caption.words], image)
        words: list[Record] = []
        for place, word in enumerate(seen.caption.words):
            top = {
                "before": boxes[seen.attention[place, layer].argmax()],
                "after": boxes[seen.aligned[place, layer].argmax()],
            }
            record: Record = {"word": word.text, **top}
            if place in named:
                record["hits"] = {when: is_on(box, named[place]) for when, box in top.items()}
            words.append(record)
        shown = keep_picture(seen.picture.image) if number < options.shown else None
        return {"words": words, "mask": float(masks.mean()), "image": shown}

    return every_picture(subjects, measure)


def _layer(options: Options, layers: int) -> int:
    if options.layer is not None and not 1 <= options.layer <= layers:
        raise ConfigError(f"layer: must be from 1 to {layers}, the decoder's layers")
    return layers - 1 if options.layer is None else options.layer - 1


def is_on(region: Box, boxes: Sequence[Box]) -> bool:
    """Whether the middle of a region is in any of the boxes.

    >>> is_on((0.0, 0.0, 0.5, 0.5), [(0.2, 0.2, 0.3, 0.3)]), is_on((0.0, 0.0, 1.0, 1.0), [])
    (True, False)
    """
    x, y = (region[0] + region[2]) / 2, (region[1] + region[3]) / 2
    return any(x0 <= x < x1 and y0 <= y < y1 for x0, y0, x1, y1 in boxes)


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows: list[dict[str, Any]] = []
    for run, of_run in by_run(records).items():
        words = [(record["picture"], word) for record in of_run for word in record["words"]]
        pictures = [picture for picture, _ in words]
        moved = estimate([float(w["before"] != w["after"]) for _, w in words], pictures)
        located = [(picture, word["hits"]) for picture, word in words if "hits" in word]
        pictures = [picture for picture, _ in located]
        row = {"run": run, "moved": moved}
        for when in COLOURS:
            row[when] = estimate([float(hits[when]) for _, hits in located], pictures)
        gains = [float(hits["after"]) - float(hits["before"]) for _, hits in located]
        rows.append({**row, "gain": estimate(gains, pictures)})
    header = ["run", "words", "top region moved (%)", "words with boxes"]
    header += ["on the object before (%)", "after (%)", "gain"]
    cells = [
        [
            *(row["run"], str(row["moved"].count), row["moved"].show(100)),
            *(str(row["before"].count), row["before"].show(100), row["after"].show(100)),
            row["gain"].show(100, sign="+"),
        ]
        for row in rows
    ]
    shown = [record for record in records if record["image"] is not None]
    data = {"rows": rows_to_json(rows), "masks": mean_masks(records)}
    return Findings(to_markdown(header, cells), _draw(shown), data)


def _draw(records: Sequence[Record]) -> Any:
    """A row for each picture, a panel for each word: blue before alignment, red after it."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    if not records:
        return no_pictures("no picture was to be drawn")
    columns = max(len(record["words"]) for record in records)
    figure = Figure(figsize=(1.3 * max(columns, 3), 1.5 * len(records) + 0.5), layout="constrained")
    grid = figure.subplots(len(records), columns, squeeze=False)
    for panels, record in zip(grid, records, strict=True):
        pixels = kept_picture(record["image"])
        height, width = pixels.shape[:2]
        for panel in panels:
            panel.axis("off")
        panels[0].text(0, -0.05, record["run"], fontsize=7, va="top", transform=panels[0].transAxes)
        for panel, word in zip(panels, record["words"], strict=False):
            panel.imshow(pixels)
            panel.set_title(word["word"], fontsize=7)
            for when, colour in COLOURS.items():
                x0, y0, x1, y1 = word[when]
                place = (x0 * width, y0 * height)
                size = ((x1 - x0) * width, (y1 - y0) * height)
                line = 3.0 if when == "before" else 1.4
                panel.add_patch(
                    Rectangle(place, *size, edgecolor=colour, linewidth=line, fill=False)
                )
    handles = [Patch(color=colour, label=f"{when} alignment") for when, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return figure


def grounds_better(data: dict[str, Any]) -> Answer:
    """Whether more top regions are on the object after alignment than before."""
    rows = [(row, Estimate.from_json(row["gain"])) for row in data["rows"]]
    if reason := outside(data["masks"]):
        return untested(reason)
    parts = [
        (
            gain,
            f"{row['run']}: {100 * row['before']['mean']:.1f} % on the object before, "
            f"{gain.show(100, sign='+')} points after",
        )
        for row, gain in rows
        if gain.bounded
    ]
    return decide_all(parts, "Too few words of these captions name something with a box.")


EXPERIMENT = Experiment(
    "paper0-figure1",
    "Which region does each word look at most, before and after alignment?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "figure 1",
            "After alignment, the region that a word looks at most is grounded more accurately.",
            on_enough(grounds_better),
        ),
    ),
)
