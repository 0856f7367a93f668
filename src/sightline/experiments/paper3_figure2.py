"""Paper 3, figures 1 and 2: self-attention of the encoder and inter-attention, by layer and head.

The figure shows pictures: how regions look at each other, and where the words look. The table says,
over all pictures, how far each head spreads: the entropy of its weights, as a share of that of
looking everywhere alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.data.dataset import CaptionedImage
from sightline.evaluation.grounding import grounded_words
from sightline.experiments.captioned import by_run, caption_of, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, decide_all, not_kept
from sightline.experiments.estimate import Estimate, estimate, rows_to_json, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import keep_picture, kept_picture, no_pictures
from sightline.experiments.grounded import attention_inside
from sightline.experiments.options import GalleryOptions
from sightline.experiments.transformer_words import require_transformer
from sightline.text.vocabulary import START


@dataclass(frozen=True)
class Options(GalleryOptions):
    """How many pictures of the first run are drawn, and which region looks at the others."""

    shown: int = 1
    region: int = 0  # the query of self-attention, counted row by row


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    return every_picture(
        subjects,
        lambda subject, image, number: _measure(subject, image, options, number < options.shown),
    )


@torch.no_grad()
def _measure(subject: Subject, image: CaptionedImage, options: Options, whole: bool) -> Record:
    """Spreads `[layer][head]`; of a picture that is drawn, the weights as well."""
    captioner = subject.captioner
    model = require_transformer(captioner)
    picture, caption = caption_of(captioner, image)
    words = captioner.vocabulary.encode(caption.text)
    tokens = torch.tensor([START, *words[:-1]], device=picture.regions.mask.device)[None, None]
    inter = model.attention_maps(tokens, model.encode(picture.regions)).raw[0, 0]
    own = model.self_attention(picture.regions)[0]
    boxes = grounded_words([word.text for word in caption.words], image)
    located = [attention_inside(caption, place, of_word) for place, of_word in boxes.items()]
    record: Record = {
        "above": [inside - area for inside, area in located],
        "inter": spread(inter).mean(0).tolist(),
        "self": spread(own).mean(-1).tolist(),
    }
    if whole:
        region = min(options.region, own.shape[-1] - 1)
        record["shown"] = {
            "image": keep_picture(picture.image),
            "words": [word.text for word in caption.words],
            "inter": inter.mean((1, 2)).tolist(),
            "self": own[:, :, region].tolist(),
            "boxes": picture.regions.boxes[0].tolist(),
        }
    return record


def spread(weights: Tensor) -> Tensor:
    """The entropy of weights `(..., L)` over that of equal ones.

    >>> spread(torch.tensor([[0.5, 0.5], [1.0, 0.0]])).abs().tolist()
    [1.0, 0.0]
    """
    entropy: Tensor = -torch.special.xlogy(weights, weights).sum(-1)
    return entropy / float(np.log(weights.shape[-1]))


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows: list[dict[str, Any]] = []
    for run, of_run in by_run(records).items():
        pictures = [record["picture"] for record in of_run]
        for kind in ("self", "inter"):
            for layer, heads in enumerate(of_run[0][kind]):
                for head in range(len(heads)):
                    values = [record[kind][layer][head] for record in of_run]
                    row = {"run": run, "attention": kind, "layer": layer + 1, "head": head + 1}
                    rows.append({**row, "spread": estimate(values, pictures)})
    table = to_markdown(
        ["captioner", "attention", "layer", "head", "spread (%)"],
        [
            [
                row["run"],
                row["attention"],
                str(row["layer"]),
                str(row["head"]),
                row["spread"].show(100),
            ]
            for row in rows
        ],
    )
    figure = _draw([r["shown"] for r in records if "shown" in r and r["run"] == rows[0]["run"]])
    above = {run: _above(of_run).to_json() for run, of_run in by_run(records).items()}
    return Findings(table, figure, {"rows": rows_to_json(rows), "above_area": above})


def _above(records: Sequence[Record]) -> Estimate:
    """Inter-attention in the boxes of what a word names, above the share that they cover."""
    words = [(record["picture"], value) for record in records for value in record["above"]]
    return estimate([value for _, value in words], [picture for picture, _ in words])


def _draw(shown: Sequence[dict[str, Any]]) -> Any:
    """Of each picture: self-attention of one region, by layer and head, and then of its words."""
    from matplotlib.figure import Figure

    if not shown:
        return no_pictures("no picture was to be drawn")
    across = 6
    every = [_maps(of_picture) for of_picture in shown]
    down = [-(-(len(maps) + 1) // across) for maps in every]
    figure = Figure(figsize=(1.6 * across, 1.8 * sum(down)), layout="constrained")
    parts = figure.subfigures(len(shown), height_ratios=down, squeeze=False)[:, 0]
    for part, of_picture, maps, rows in zip(parts, shown, every, down, strict=True):
        image = kept_picture(of_picture["image"])
        panels = part.subplots(rows, across, squeeze=False).ravel()
        for panel in panels:
            panel.axis("off")
        panels[0].imshow(image)
        panels[0].set_title("picture", fontsize=8)
        for panel, (title, weights) in zip(panels[1:], maps, strict=False):
            panel.imshow(image)
            laid_out = _lay_out(weights, of_picture["boxes"], image.shape[:2])
            panel.imshow(laid_out, cmap="inferno", alpha=0.65)
            panel.set_title(title, fontsize=8)
    return figure


def _maps(shown: dict[str, Any]) -> list[tuple[str, Any]]:
    """Weights of regions, and what they are called."""
    own = [
        (f"self {layer + 1}.{head + 1}", weights)
        for layer, heads in enumerate(shown["self"])
        for head, weights in enumerate(heads)
    ]
    return own + list(zip(shown["words"], shown["inter"], strict=True))


def _lay_out(weights: Any, boxes: Any, size: tuple[int, int]) -> NDArray[np.float64]:
    """Weights of regions over the pixels that they cover."""
    height, width = size
    canvas = np.zeros(size)
    for weight, (x0, y0, x1, y1) in zip(weights, boxes, strict=True):
        rows = slice(round(y0 * height), round(y1 * height))
        canvas[rows, round(x0 * width) : round(x1 * width)] += weight
    return canvas


def looks_at_what_matters(data: dict[str, Any]) -> Answer:
    if "above_area" not in data:
        return not_kept("the attention inside boxes")
    parts = []
    for run, values in data["above_area"].items():
        above = Estimate.from_json(values)
        if above.count:
            more = f"{run}: {above.show(100, sign='+')} points of inter-attention inside the box"
            parts.append((above, f"{more}, above its area"))
    return decide_all(parts, "No word of these captions names something with a box.")


EXPERIMENT = Experiment(
    "paper3-figure2",
    "Where do the heads of a Transformer look, in its encoder and from word to word?",
    Options,
    tasks,
    conclude,
    (
        Claim(
            "figure 2",
            "Inter-attention is higher on regions that matter to the word.",
            on_enough(looks_at_what_matters),
        ),
    ),
)
