"""Paper 3, figures 1 and 2: self-attention of the encoder and inter-attention, by layer and head.

The figure shows one picture: how all regions look at each other, and where the words look. The
table says, over all pictures, how far each head spreads: the entropy of its weights, as a share of
that of looking everywhere alike.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.experiments.estimate import estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.transformer_words import require_transformer
from sightline.text.vocabulary import START


@dataclass(frozen=True)
class Options:
    """Which picture and which region the figure shows."""

    region: int = 0  # the query of self-attention, counted row by row


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    for subject in subjects:
        for number, image in enumerate(subject.images):
            yield Task(
                f"{subject.name}/{image.name}",
                lambda subject=subject, image=image, number=number: {  # type: ignore[misc]
                    "run": subject.name,
                    "picture": image.name,
                    **_measure(subject, image.picture, options, whole=number == 0),
                },
            )


@torch.no_grad()
def _measure(subject: Subject, source: Any, options: Options, whole: bool) -> Record:
    """Spreads `[layer][head]`; of the picture that is drawn, the weights as well."""
    captioner = subject.captioner
    model = require_transformer(captioner)
    picture = captioner.encode(captioner.open(source))
    caption = captioner.caption(picture)
    words = captioner.vocabulary.encode(caption.text)
    tokens = torch.tensor([START, *words[:-1]], device=picture.regions.mask.device)[None, None]
    inter = model.attention_maps(tokens, model.encode(picture.regions)).raw[0, 0]
    own = model.self_attention(picture.regions)[0]
    record: Record = {
        "inter": spread(inter).mean(0).tolist(),
        "self": spread(own).mean(-1).tolist(),
    }
    if whole:
        image = picture.image.copy()
        image.thumbnail((128, 128))
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        region = min(options.region, own.shape[-1] - 1)
        record["shown"] = {
            "png": base64.b64encode(buffer.getvalue()).decode(),
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
    for run in dict.fromkeys(record["run"] for record in records):
        of_run = [record for record in records if record["run"] == run]
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
    data = {"rows": [{**row, "spread": row["spread"].to_json()} for row in rows]}
    return Findings(table, _draw(next(r["shown"] for r in records if "shown" in r)), data)


def _draw(shown: dict[str, Any]) -> Any:
    """Self-attention of one region above, a row for each layer; words below."""
    from matplotlib.figure import Figure
    from PIL import Image

    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown["png"]))).convert("RGB"))
    maps = [
        (f"self {layer + 1}.{head + 1}", weights)
        for layer, heads in enumerate(shown["self"])
        for head, weights in enumerate(heads)
    ]
    maps += list(zip(shown["words"], shown["inter"], strict=True))
    across = 6
    down = -(-(len(maps) + 1) // across)
    figure = Figure(figsize=(1.6 * across, 1.8 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    panels[0].imshow(image)
    panels[0].set_title("picture", fontsize=8)
    for panel, (title, weights) in zip(panels[1:], maps, strict=False):
        panel.imshow(image)
        panel.imshow(_lay_out(weights, shown["boxes"], image.shape[:2]), cmap="inferno", alpha=0.65)
        panel.set_title(title, fontsize=8)
    return figure


def _lay_out(weights: Any, boxes: Any, size: tuple[int, int]) -> NDArray[np.float64]:
    """Weights of regions over the pixels that they cover."""
    height, width = size
    canvas = np.zeros(size)
    for weight, (x0, y0, x1, y1) in zip(weights, boxes, strict=True):
        rows = slice(round(y0 * height), round(y1 * height))
        canvas[rows, round(x0 * width) : round(x1 * width)] += weight
    return canvas


EXPERIMENT = Experiment(
    "paper3-figure2",
    "Where do the heads of a Transformer look, in its encoder and from word to word?",
    Options,
    tasks,
    conclude,
)
