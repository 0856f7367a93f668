"""Fit the support classifier: scores of held-out words, labelled by the references."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.captions import VERDICTS
from sightline.data.dataset import CaptionedImage
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.encoders.region_cache import RegionCache
from sightline.errors import DataError
from sightline.metrics.auc import Auc, auc
from sightline.metrics.word_labels import label_words
from sightline.models.interface import CaptionModel
from sightline.progress import progress
from sightline.regions import Regions
from sightline.support.classifier import BATCH, SupportClassifier, mean_log_odds, score_words
from sightline.support.logistic import Floats, fit_logistic, held_out_logits, sigmoid
from sightline.support.word_classifier import WordClassifier, table
from sightline.support.word_detector import WordDetector
from sightline.text.vocabulary import END, PAD, Vocabulary

OTHERS = 8  # other pictures that stand in for one
FOLDS = 5
UNSURE = 0.02  # the share of captions of which little is found; with `WARNED`, 4 % of pictures
FEWEST = 10  # right words, and wrong ones, that can be fitted to


@dataclass(frozen=True, eq=False)
class Sample:
    """The content words of a captioner's own captions, with what is known of each."""

    names: tuple[str, ...]  # of the single scores
    scores: Floats  # (words, names)
    right: NDArray[np.bool_]  # whether the picture's references say the word
    pictures: NDArray[np.int64]
    words: tuple[str, ...]

    def only(self, rows: NDArray[np.bool_]) -> "Sample":
        """Some of the words."""
        words = tuple(word for word, keep in zip(self.words, rows, strict=True) if keep)
        return Sample(self.names, self.scores[rows], self.right[rows], self.pictures[rows], words)


def choose_others(
    images: Sequence[CaptionedImage],
) -> tuple[list[CaptionedImage], list[CaptionedImage]]:
    """Some pictures to stand in for others, taken evenly from `images`; and those that remain."""
    step = max(len(images) // OTHERS, 1)
    taken = set(range(0, len(images), step)[:OTHERS])
    rest = [image for n, image in enumerate(images) if n not in taken]
    if not rest:
        raise DataError(f"{len(images)} pictures are too few to fit on; use at least a hundred")
    return [images[n] for n in sorted(taken)], rest


def make_reference_regions(
    others: Sequence[Path | Image], cache: RegionCache, device: torch.device | str = "cpu"
) -> Regions:
    """What a picture is replaced by, to see what a word owes it: a blank, then other pictures.

    The blank is their mean region, everywhere: it shows nothing in particular. The encoding of a
    grey picture would be unlike anything that the captioner was trained on.
    """
    regions = cache.regions(cache.rows([cache.key(picture) for picture in others]))
    visible = regions.mask[..., None]
    mean = ((regions.vectors * visible).sum((0, 1)) / visible.sum()).half().float()  # as stored
    blank = mean.expand(1, regions.vectors.shape[1], -1)
    joined = Regions(
        torch.cat([blank, regions.vectors]),
        torch.cat([regions.mask[:1], regions.mask]),
        torch.cat([regions.boxes[:1], regions.boxes]),
    )
    return joined.to(device)


def collect(
    model: CaptionModel,
    vocabulary: Vocabulary,
    options: BeamOptions,
    images: Sequence[CaptionedImage],
    cache: RegionCache,
    reference_regions: Regions,
    detector: WordDetector | None = None,
    *,
    show_progress: bool = False,
) -> Sample:
    """Caption pictures by beam search; the scores and labels of their words."""
    device = next(model.parameters()).device
    rows = cache.rows([cache.key(image.picture) for image in images])
    scores: list[dict[str, float]] = []
    right: list[bool] = []
    pictures: list[int] = []
    words: list[str] = []
    bar = progress(None, "checking", total=len(rows), unit="picture", show=show_progress)
    with bar:
        for first in range(0, len(rows), BATCH):
            regions = cache.regions(rows[first : first + BATCH]).to(device)
            with torch.no_grad():
                hypotheses = beam_search(model, model.encode(regions), options)
            best = hypotheses.tokens[:, 0].tolist()
            captions = [[word for word in row if word not in (END, PAD)] for row in best]
            scored = score_words(model, vocabulary, regions, captions, reference_regions, detector)
            scores += scored.scores
            for n, said in enumerate(scored.texts):
                words += said
                right += label_words(said, images[first + n].captions)
                pictures += [first + n] * len(said)
            bar.update(len(regions))
    if not words:
        raise DataError("the captions have no content words: there is nothing to check")
    names = tuple(scores[0])
    return Sample(names, table(scores, names), np.array(right), np.array(pictures), tuple(words))


def fit_classifier(
    sample: Sample, reference_regions: Regions, detector: WordDetector | None = None
) -> SupportClassifier:
    """The classifier of a captioner: weights, and the scores from which its verdicts change."""
    right = int(sample.right.sum())
    wrong = len(sample.right) - right
    if min(right, wrong) < FEWEST:
        raise DataError(
            f"{right} content words are right by the references and {wrong} wrong: at least "
            f"{FEWEST} of each are needed; give more pictures"
        )
    seen, unsupported = thresholds(held_out_scores(sample), sample.right)
    combination = fit_logistic(sample.scores, sample.right)
    unsure = float("-inf")
    if detector is not None:
        unsure = float(np.quantile([*found_of_captions(sample).values()], UNSURE))
    return SupportClassifier(
        sample.names, combination, seen, unsupported, reference_regions, detector, unsure
    )


def found_of_captions(sample: Sample) -> dict[int, float]:
    """For each picture, the mean log-odds that the detector gives the words of its caption."""
    columns = [sample.names.index(name) for name in ("detected", "frequency")]
    rows = sample.scores[:, columns]
    return {
        int(picture): mean_log_odds(rows[sample.pictures == picture].tolist())
        for picture in np.unique(sample.pictures)
    }


def held_out_scores(sample: Sample) -> Floats:
    """The score of each word by weights that were fitted without its picture's fold."""
    return sigmoid(held_out_logits(sample.scores, sample.right, sample.pictures % FOLDS))


def combined_scores(sample: Sample, classifier: WordClassifier) -> Floats:
    """The score that a classifier gives each word."""
    return classifier.combination.predict(
        sample.scores[:, [*map(sample.names.index, classifier.names)]]
    )


def thresholds(scores: Floats, right: NDArray[np.bool_]) -> tuple[float, float]:
    """From which score on a word is called seen, and up to which it is called not supported.

    A word is seen where right words of about its score outnumber wrong ones two to one, and not
    supported where wrong ones outnumber right ones so, and three of four words that are called so
    are wrong. How often words of a score are right is taken from the words themselves, by isotonic
    regression: the higher the score, the oftener.

    >>> thresholds(np.array([0.1, 0.2, 0.6, 0.7, 0.9]), np.array([False, False, True, False, True]))
    (0.9, 0.2)
    """
    order = np.argsort(scores, kind="stable")
    ranked, share = scores[order], isotonic(right[order].astype(np.float64))
    share_so_far = np.cumsum(right[order]) / np.arange(1, len(right) + 1)
    seen, unsupported = ranked[share >= 2 / 3], ranked[(share <= 1 / 3) & (share_so_far <= 1 / 4)]
    return (
        float(seen[0]) if len(seen) else 1.0,
        float(unsupported[-1]) if len(unsupported) else 0.0,
    )


def isotonic(values: Floats) -> Floats:
    """The nearest numbers to `values` that never fall, by pooling those that do.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []  # sum, count
    for value in values.tolist():
        total, count = value, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return np.concatenate([np.full(count, total / count) for total, count in pools])


def auc_table(sample: Sample, combined: Floats) -> list[Auc]:
    """The AUC of each single score and of their combination, as in paper 4's table 3."""
    columns = dict(zip(sample.names, sample.scores.T, strict=True))
    return [
        auc(scores, sample.right, sample.pictures, name)
        for name, scores in {**columns, "combination": combined}.items()
    ]


def verdict_counts(
    classifier: WordClassifier, combined: Floats, right: NDArray[np.bool_]
) -> dict[str, tuple[int, int]]:
    """For each verdict how many words have it, and how many of them are right."""
    given = np.array([classifier.verdict(score) for score in combined])
    return {v: (int((given == v).sum()), int(right[given == v].sum())) for v in VERDICTS}
