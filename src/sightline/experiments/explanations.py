"""The benchmark of explanation methods: is a word's map at the right place, and is it true?

Every word of a captioner's own captions that names something with boxes is explained by every
method. A row of the table is a *map*: what a method shows, and, if that is finer than the regions,
what it gives to the regions. Relevance drawn at random is a row, too: that is chance.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.evaluation.localisation import lean, overlap, pointed, share_inside
from sightline.evaluation.perturbation import FRACTIONS, ORDERS, REPLACEMENTS, Perturbation
from sightline.evaluation.shuffled_weights import rank_correlation, shuffle_weights
from sightline.experiments.estimate import estimate, rows_to_json
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.explanations_curves import summarise_curves
from sightline.experiments.explanations_figure import RANDOM, draw
from sightline.experiments.explanations_tables import count, tabulate, tabulate_curves
from sightline.experiments.grounded import (
    GroundedCaption,
    ground,
    picture_tasks,
    require_words,
)
from sightline.experiments.options import MethodOptions
from sightline.explain.methods import find_method
from sightline.explain.upsampling import average_boxes, upsample_boxes
from sightline.explanation import Explanation

Maps = dict[str, NDArray[np.float32]]
"""Heatmaps `(H, W)` of a word, by the name of the row."""

# Boxes are of different things if less than half of the smaller one lies in the larger one: of a
# thing inside another, its relevance is in both boxes.
SEPARATE = 0.5


@dataclass(frozen=True)
class Options(MethodOptions):
    """Which methods, and how many pictures the costly measures are taken on."""

    methods: tuple[str, ...] = (
        "lrp",
        "contrastive_lrp",
        "attention",
        "grad_cam",
        "guided_grad_cam",
        "gradient_input",
    )
    region_curves: int = 100  # pictures in which regions are hidden
    pixel_curves: int = 30  # pictures in which pixels are hidden: each is encoded again and again
    shuffled: int = 30  # pictures that are explained with shuffled weights, too


def tasks(subjects: Sequence[Subject], options: Options) -> Iterator[Task]:
    shuffled: dict[str, Captioner] = {}  # by the captioner they are made of

    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        grounded = ground(captioner, image)
        if not grounded.masks:
            return {"words": [], "pairs": [], "seconds": {}}
        maps, seconds = explain(captioner, grounded, options.methods, number)
        words: list[Record] = [
            {
                "word": grounded.caption.words[place].text,
                "area": float(mask.mean()),
                "maps": {
                    name: {"inside": share_inside(shown, mask), "pointed": pointed(shown, mask)}
                    for name, shown in of_word.items()
                },
            }
            for (place, mask), of_word in zip(grounded.masks.items(), maps, strict=True)
        ]
        some = _spread(number, len(subject.images))
        if some < options.region_curves or some < options.pixel_curves:
            _add_curves(captioner, grounded, maps, words, options, some)
        if some < options.shuffled:
            if subject.name not in shuffled:
                shuffled[subject.name] = shuffle_weights(captioner)
            others, _ = explain(shuffled[subject.name], grounded, options.methods, number)
            for word, of_word, other in zip(words, maps, others, strict=True):
                for name in of_word.keys() - {RANDOM}:
                    word["maps"][name]["shuffled"] = _alike(of_word[name], other[name], grounded)
        return {"words": words, "pairs": _pairs(grounded, maps), "seconds": seconds}

    return picture_tasks(subjects, measure)


def _spread(number: int, count: int) -> int:
    """The rank of a picture among `count` when they are taken in an order drawn at random."""
    return int(np.random.default_rng(0).permutation(count)[number])


def explain(
    captioner: Captioner, grounded: GroundedCaption, methods: Sequence[str], seed: int
) -> tuple[list[Maps], dict[str, float]]:
    """The maps of each grounded word, and the seconds of this process per word and method."""
    places = list(grounded.masks)
    maps: list[Maps] = [{} for _ in places]
    seconds = {}
    # What shows pixels gives something to the regions, too. (Those of contrastive LRP are LRP's.)
    finer = {m for m in methods if find_method(m).finer} - {"contrastive_lrp"}
    apart = set() if captioner.encoder.stops_at_regions else finer
    for method in methods:
        began = time.process_time()
        explanations = captioner.explain(
            grounded.picture, grounded.caption, words=places, method=method
        )
        seconds[method] = (time.process_time() - began) / len(places)
        for of_word, why in zip(maps, explanations, strict=True):
            assert why.heatmap is not None
            of_word[method] = why.heatmap
            regions = _regions(why, why.regions, grounded.picture.size)
            if method in apart:
                of_word[f"{method}, regions"] = regions
    draw = np.random.default_rng(seed)
    for of_word in maps:
        values = draw.random(len(why.regions)).astype(np.float32)
        of_word[RANDOM] = _regions(why, values, grounded.picture.size)
    return maps, seconds


def _regions(
    why: Explanation, values: NDArray[np.float32], size: tuple[int, int]
) -> NDArray[np.float32]:
    boxes = torch.tensor(why.boxes)
    heatmap: NDArray[np.float32] = upsample_boxes(torch.from_numpy(values)[None], boxes, size)[
        0
    ].numpy()
    return heatmap


def _pairs(grounded: GroundedCaption, maps: Sequence[Maps]) -> list[Record]:
    """For two words of different things: which box the map of each leans towards."""
    pairs = []
    words = list(zip(grounded.masks.values(), maps, strict=True))
    for (mask, of_word), (other_mask, of_other) in combinations(words, 2):
        if overlap(mask, other_mask) < SEPARATE:
            leans = {
                name: [
                    lean(of_word[name], mask, other_mask),
                    lean(of_other[name], mask, other_mask),
                ]
                for name in of_word
            }
            pairs.append(leans)
    return pairs


def _pool(heatmap: NDArray[np.float32], grounded: GroundedCaption) -> NDArray[np.float32]:
    """What each region has of a heatmap, per pixel."""
    boxes = grounded.picture.regions.boxes[0].cpu()
    pooled: NDArray[np.float32] = average_boxes(torch.from_numpy(heatmap)[None], boxes)[0].numpy()
    return pooled


def _alike(
    one: NDArray[np.float32], other: NDArray[np.float32], grounded: GroundedCaption
) -> float:
    return rank_correlation(_pool(one, grounded), _pool(other, grounded))


def _add_curves(
    captioner: Captioner,
    grounded: GroundedCaption,
    maps: Sequence[Maps],
    words: Sequence[Record],
    options: Options,
    some: int,
) -> None:
    ids = captioner.ids_of(grounded.caption)
    perturbation = Perturbation(captioner, grounded.picture, ids)
    for place, word, of_word in zip(grounded.masks, words, maps, strict=True):
        curves: dict[str, Any] = {}
        if some < options.region_curves:
            pooled = [_pool(heatmap, grounded) for heatmap in of_word.values()]
            curves["regions"] = perturbation.regions(place, pooled)
        if some < options.pixel_curves:
            curves["pixels"] = perturbation.pixels(place, list(of_word.values()))
        for parts, of_maps in curves.items():
            for name, of_map in zip(of_word, of_maps, strict=True):
                word["maps"][name][parts] = of_map


# --- what follows --------------------------------------------------------------------------------


def conclude(records: Sequence[Record], options: Options) -> Findings:
    require_words(records)
    names = {run: _names(run, records) for run in dict.fromkeys(r["run"] for r in records)}
    rows = [_summarise(run, name, records) for run in names for name in names[run]]
    curves = [row for run in names for row in summarise_curves(run, names[run], records)]
    table = f"{tabulate(rows)}\n{count(rows)}"
    if curves:
        table += f"\n{tabulate_curves(curves)}"
    data = {"rows": rows_to_json(rows), "hidden": rows_to_json(curves), "fractions": FRACTIONS}
    return Findings(table, draw(rows), data)


def _names(run: str, records: Sequence[Record]) -> list[str]:
    words = (word for record in records for word in record["words"] if record["run"] == run)
    return list(next(words, {"maps": {}})["maps"])


def _summarise(run: str, name: str, records: Sequence[Record]) -> dict[str, Any]:
    """A row: estimates by the name of the column, and mean curves."""
    records = [record for record in records if record["run"] == run and record["words"]]
    columns: dict[str, list[tuple[str, float]]] = {
        column: [] for column in ("area", "inside", "pointed", "shuffled", "regions", "pixels")
    }
    columns |= {column: [] for column in ("prefers_its_box", "discriminates", "seconds")}
    curves: dict[str, list[Any]] = {"regions": [], "pixels": []}
    for record in records:
        picture = record["picture"]
        for word in record["words"]:
            measured = word["maps"][name]
            columns["area"].append((picture, word["area"]))
            columns["inside"].append((picture, measured["inside"] - word["area"]))
            columns["pointed"].append((picture, measured["pointed"]))
            if "shuffled" in measured:
                columns["shuffled"].append((picture, measured["shuffled"]))
            for parts in ("regions", "pixels"):
                if parts in measured:
                    curve = np.array(measured[parts])
                    curves[parts].append(curve)
                    columns[parts].append((picture, _gain(curve)))
        for leans in record["pairs"]:
            mine, other = leans[name]
            # The first word's map prefers the first box, and the second's the second.
            columns["prefers_its_box"] += [(picture, _above(mine)), (picture, _above(1 - other))]
            columns["discriminates"].append((picture, _above(0.5 + (mine - other) / 2)))
        if name in record["seconds"]:
            columns["seconds"].append((picture, record["seconds"][name]))
    estimates = {
        column: estimate([value for _, value in values], [picture for picture, _ in values])
        for column, values in columns.items()
    }
    means = {
        parts: np.mean(of_words, 0).tolist() if of_words else None
        for parts, of_words in curves.items()
    }
    return {"run": run, "model": records[0]["model"], "map": name, **estimates, "curves": means}


def _above(number: float) -> float:
    """1 above a half, 0 below it; neither is half of both."""
    return float(number > 0.5) + 0.5 * float(number == 0.5)


def _gain(curves: NDArray[np.float64]) -> float:
    """How much more falls if the most relevant parts go first: the mean of all fractions."""
    by_order = curves.reshape(len(ORDERS), len(REPLACEMENTS), len(FRACTIONS)).mean((1, 2))
    return float(by_order[0] - by_order[1])


EXPERIMENT = Experiment(
    "explanations",
    "Which explanation method points at the right thing, and is true to the captioner?",
    Options,
    tasks,
    conclude,
)
