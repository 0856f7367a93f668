"""Is relevance on the object that a word names? (Paper 4, section 4.1, eq. 9 and figure 3.)

Words are explained in captions that the captioner wrote itself, where they name something that has
boxes in the picture. Of each word's relevance the positive part is kept, and the share of it inside
the boxes is measured: the *correctness* of its localisation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sightline.captioner import Captioner
from sightline.config import nearest
from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError, DataError
from sightline.evaluation.grounding import grounded_words, inside
from sightline.explain.methods import list_methods
from sightline.explain.upsampling import upsample_boxes
from sightline.explanation import Explanation
from sightline.files import atomic_write
from sightline.metrics.bootstrap import compare, interval
from sightline.metrics.score import Floats, Score
from sightline.progress import progress

COMPARED = ("attention", "grad_cam", "guided_grad_cam", "lrp")
"""Those of the paper."""

THRESHOLDS = np.arange(10) / 10
"""Relevance below so much of the largest is left out; eq. 9 leaves out none."""

_BATCH = 16  # pictures captioned at once


@dataclass(frozen=True, eq=False)
class Localisation:
    """How well one method finds what the words of a captioner name: a row for each word."""

    method: str
    pictures: NDArray[np.int64]  # (N,): which picture a word is of
    area: Floats  # (N,): the boxes' share of the picture, which relevance spread evenly would have
    positive: Floats  # (N, thresholds): the share of positive relevance that is inside the boxes
    negative: Floats  # (N, thresholds): the same of what speaks against it, if any
    regions: Floats  # (N,): the share of positive relevance if it stops at the regions
    pointed: Floats  # (N,): whether the most relevant pixel is inside (Zhang et al. 2016)

    @property
    def score(self) -> Score:
        """The mean of eq. 9 over words; to be resampled by picture, since words of one are alike.

        >>> shares = np.array([[0.2], [0.4], [0.9]])
        >>> one = np.ones(3)
        >>> measured = Localisation("lrp", np.array([0, 0, 1]), one, shares, shares, one, one)
        >>> measured.score.corpus, measured.score.per_image.round(2).tolist()
        (0.5, [0.3, 0.9])
        """
        _, number = np.unique(self.pictures, return_inverse=True)
        sums = np.bincount(number, self.positive[:, 0])
        statistics = np.stack([sums, np.bincount(number).astype(float)], 1)
        return Score(
            self.method,
            float(_mean(statistics.sum(0))),
            _mean(statistics),
            statistics,
            _mean,
        )


@dataclass(frozen=True)
class RunLocalisation:
    """What was measured with one captioner."""

    run: str
    model: str
    localisations: list[Localisation]


def correctness(relevance: NDArray[Any], mask: NDArray[np.bool_]) -> Floats:
    """Eq. 9 `(thresholds,)` of relevance `(H, W)`, where `mask` is what lies inside the boxes.

    Nothing positive at all is nothing inside.

    >>> relevance = np.array([[4.0, 1.0, -3.0, 3.0]])
    >>> shares = correctness(relevance, np.array([[True, True, True, False]]))
    >>> shares[[0, 5]].round(3).tolist()  # of 4 + 1 + 3; from half the largest on, of 4 + 3
    [0.625, 0.571]
    """
    positive = np.clip(relevance.astype(np.float64), 0, None)
    peak = positive.max()
    if peak <= 0:
        return np.zeros(len(THRESHOLDS))
    # Pixels by the threshold they just pass: then every sum is a sum from some bin on.
    bins = np.minimum((positive / peak * len(THRESHOLDS)).astype(int), len(THRESHOLDS) - 1)
    all_of, of_those = (
        np.bincount(bins[chosen], positive[chosen], len(THRESHOLDS))[::-1].cumsum()[::-1]
        for chosen in (np.ones_like(mask), mask)
    )
    return np.asarray(of_those / all_of)


def localise(
    captioner: Captioner,
    images: Sequence[CaptionedImage],
    methods: Sequence[str] = COMPARED,
    *,
    show_progress: bool = False,
) -> list[Localisation]:
    """How much of the relevance of words lies inside the boxes of what they name, by method.

    Every method explains the same words of the same captions.

    >>> images = make_scene_dataset().split("test")  # doctest: +SKIP
    >>> localise(sightline.load("runs/scenes"), images, ["lrp"])[0].score.corpus  # doctest: +SKIP
    0.61
    """
    for method in methods:
        if method not in list_methods():
            hint = nearest(method, list_methods())
            raise ConfigError(f"localise: no explanation method is called '{method}'; {hint}")
    chosen = [image for image in images if image.groundings]
    if not chosen:
        raise DataError(f"none of the {len(images)} pictures has boxes; give a file with --boxes")
    rows: dict[str, list[tuple[Any, ...]]] = {method: [] for method in methods}
    bar = progress(None, "explaining", total=len(chosen), unit="picture", show=show_progress)
    with bar:
        for number, image in enumerate(chosen):
            if number % _BATCH == 0:
                pictures = [entry.picture for entry in chosen[number : number + _BATCH]]
                batch = [captioner.open(picture) for picture in pictures]
                captions = captioner.caption(batch)
            caption, picture = captions[number % _BATCH], batch[number % _BATCH]
            boxes = grounded_words([word.text for word in caption.words], image)
            masks = [
                inside(word_boxes, picture.height, picture.width) for word_boxes in boxes.values()
            ]
            for method in methods if boxes else ():
                explanations = captioner.explain(picture, caption, words=list(boxes), method=method)
                for why, mask in zip(explanations, masks, strict=True):
                    rows[method].append((number, *_measure(why, mask)))
            bar.update()
    if not any(rows.values()):
        raise DataError(f"the captions of {len(chosen)} pictures name no object that has a box")
    return [
        Localisation(method, *(np.array(column) for column in zip(*rows[method], strict=True)))
        for method in methods
    ]


def _measure(why: Explanation, mask: NDArray[np.bool_]) -> tuple[Any, ...]:
    """All numbers of one word, in the order of `Localisation`."""
    assert why.heatmap is not None
    peak = why.heatmap.max()
    regions = upsample_boxes(
        torch.from_numpy(why.regions).clamp(min=0)[None], torch.tensor(why.boxes), mask.shape
    )
    return (
        mask.mean(),
        correctness(why.heatmap, mask),
        correctness(-why.heatmap, mask),
        correctness(regions[0].numpy(), mask)[0],
        # All pixels of a region may be the most relevant: how likely is it that a lot falls inside?
        mask[why.heatmap >= peak - 1e-5 * abs(peak)].mean(),
    )


def _mean(statistics: Floats) -> Floats:
    """Sums over counts, of rows `(..., 2)`."""
    return np.asarray(statistics[..., 0] / statistics[..., 1])


def tabulate(runs: Sequence[RunLocalisation]) -> list[dict[str, Any]]:
    """A row for every run and method; intervals hold in 95 of 100 draws of pictures."""
    rows = []
    for run in runs:
        attention = next(
            (
                localisation.score
                for localisation in run.localisations
                if localisation.method == "attention"
            ),
            None,
        )
        for localisation in run.localisations:
            row: dict[str, Any] = {
                "run": run.run,
                "model": run.model,
                "method": localisation.method,
                "pictures": len(localisation.score.per_image),
                "words": len(localisation.area),
                "area": float(localisation.area.mean()),
                "inside": localisation.score.corpus,
                "interval": interval(localisation.score),
                "regions": float(localisation.regions.mean()),
                "negative": float(localisation.negative[:, 0].mean()),
                "pointed": float(localisation.pointed.mean()),
                "above_attention": None,
            }
            if attention is not None and localisation.method != "attention":
                above = compare(replace(localisation.score, name="attention"), attention)
                row["above_attention"] = (above.difference, above.low, above.high)
            rows.append(row)
    return rows


def to_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table of `tabulate`, in percent.

    >>> row = {"run": "r", "model": "td", "method": "lrp", "pictures": 9, "words": 12}
    >>> row |= {"area": 0.2, "inside": 0.5, "interval": (0.4, 0.6), "regions": 0.6, "negative": 0.1}
    >>> row |= {"pointed": 0.9, "above_attention": (0.1, 0.05, 0.15)}
    >>> print(to_markdown([row]).splitlines()[2])
    | r | td | 12 | 20.0 | lrp | 50.0 (40.0 to 60.0) | +10.0 (+5.0 to +15.0) | 60.0 | 10.0 | 90.0 |
    """
    header = ["run", "model", "words", "area", "method", "inside", "above attention", "regions"]
    header += ["negative", "pointed"]
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    for row in rows:
        inside, low, high = (100 * value for value in (row["inside"], *row["interval"]))
        above = "-"
        if row["above_attention"] is not None:
            above = "{:+.1f} ({:+.1f} to {:+.1f})".format(
                *(100 * v for v in row["above_attention"])
            )
        cells = [row["run"], row["model"], str(row["words"]), f"{100 * row['area']:.1f}"]
        cells += [row["method"], f"{inside:.1f} ({low:.1f} to {high:.1f})", above]
        cells += [f"{100 * row[name]:.1f}" for name in ("regions", "negative", "pointed")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(runs: Sequence[RunLocalisation], path: Path) -> None:
    """Figure 3 of the paper, a panel for each run: what is inside of relevance above a threshold.

    What speaks against a word is dashed.
    """
    from matplotlib.figure import Figure

    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"{path}: a figure must end in .png, .pdf or .svg")
    figure = Figure(figsize=(3.2 * len(runs) + 1.4, 3.4), layout="constrained")
    panels = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0]
    for run, panel in zip(runs, panels, strict=True):
        for number, localisation in enumerate(run.localisations):
            colour = f"C{number}"
            panel.plot(
                THRESHOLDS,
                100 * localisation.positive.mean(0),
                color=colour,
                label=localisation.method,
            )
            if localisation.negative.any():
                panel.plot(
                    THRESHOLDS, 100 * localisation.negative.mean(0), "--", color=colour, linewidth=1
                )
        panel.axhline(
            100 * run.localisations[0].area.mean(), color="grey", linewidth=1, label="area"
        )
        panel.set_title(run.run, fontsize=9)
        panel.set_xlabel("threshold")
    panels[0].set_ylabel("inside the boxes (%)")
    panels[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format=path.suffix[1:], dpi=110)
