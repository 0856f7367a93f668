"""Is relevance where the thing is that a word names? (Paper 4, section 4.1, eq. 9 and figure 3.)

Words are explained in captions that the captioner wrote itself, where they name something that has
boxes in the picture. Of each word's relevance the positive part is kept, and the share of it inside
the boxes is measured: the *correctness* of its localisation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sightline.analysis.grounding import grounded_words, inside
from sightline.captioner import Captioner
from sightline.config import nearest
from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError, DataError
from sightline.explain.explanation import Explanation
from sightline.explain.methods import list_methods
from sightline.explain.painting import paint_boxes
from sightline.metrics.score import Floats, Score
from sightline.progress import progress

METHODS = ("attention", "grad_cam", "guided_grad_cam", "lrp")
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
    negative: Floats  # (N, thresholds): the same of what speaks against the word
    regions: Floats  # (N,): the share of positive relevance if it stops at the regions
    pointed: Floats  # (N,): 1 where the most relevant pixel is inside (Zhang et al. 2016)

    @property
    def score(self) -> Score:
        """The mean of eq. 9 over words; to be resampled by picture, since words of one are alike.

        >>> shares = np.array([[0.2], [0.4], [0.9]])
        >>> one = np.ones(3)
        >>> found = Localisation("lrp", np.array([0, 0, 1]), one, shares, shares, one, one)
        >>> found.score.corpus, found.score.per_image.round(2).tolist()
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


def correctness(relevance: NDArray[Any], there: NDArray[np.bool_]) -> Floats:
    """Eq. 9 `(thresholds,)` of relevance `(H, W)`, where `there` is what lies inside the boxes.

    Nothing positive at all is nothing inside.

    >>> relevance = np.array([[4.0, 1.0, -3.0, 3.0]])
    >>> found = correctness(relevance, np.array([[True, True, True, False]]))
    >>> found[[0, 5]].round(3).tolist()  # of 4 + 1 + 3; from half the largest on, of 4 + 3
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
        for chosen in (np.ones_like(there), there)
    )
    return np.asarray(of_those / all_of)


def localise(
    captioner: Captioner,
    images: Sequence[CaptionedImage],
    methods: Sequence[str] = METHODS,
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
            raise ConfigError(f"localise: no method of explanation is called '{method}'; {hint}")
    chosen = [image for image in images if image.groundings]
    if not chosen:
        raise DataError(f"none of the {len(images)} pictures has boxes; name a file by --boxes")
    rows: dict[str, list[tuple[Any, ...]]] = {method: [] for method in methods}
    bar = progress(None, "explaining", total=len(chosen), unit="picture", show=show_progress)
    with bar:
        for number, image in enumerate(chosen):
            if number % _BATCH == 0:
                batch = [captioner.open(one.picture) for one in chosen[number : number + _BATCH]]
                captions = captioner.caption(batch)
            caption, picture = captions[number % _BATCH], batch[number % _BATCH]
            boxes = grounded_words([word.text for word in caption.words], image)
            masks = [inside(own, picture.height, picture.width) for own in boxes.values()]
            for method in methods if boxes else ():
                found = captioner.explain(picture, caption, words=list(boxes), method=method)
                for why, mask in zip(found, masks, strict=True):
                    rows[method].append((number, *_measure(why, mask)))
            bar.update()
    if not any(rows.values()):
        raise DataError(f"the captions of {len(chosen)} pictures name nothing that has a box")
    return [
        Localisation(method, *(np.array(column) for column in zip(*rows[method], strict=True)))
        for method in methods
    ]


def _measure(why: Explanation, mask: NDArray[np.bool_]) -> tuple[Any, ...]:
    """All numbers of one word, in the order of `Localisation`."""
    assert why.picture is not None
    regions = paint_boxes(
        torch.from_numpy(why.regions).clamp(min=0)[None], torch.tensor(why.boxes), mask.shape
    )
    return (
        mask.mean(),
        correctness(why.picture, mask),
        correctness(-why.picture, mask),
        correctness(regions[0].numpy(), mask)[0],
        float(mask.flat[why.picture.argmax()]),
    )


def _mean(statistics: Floats) -> Floats:
    """Sums over counts, of rows `(..., 2)`."""
    return np.asarray(statistics[..., 0] / statistics[..., 1])
