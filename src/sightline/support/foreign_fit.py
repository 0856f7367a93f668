"""Fit the judge of captions that others wrote: people's captions, and these with words swapped."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sightline.data.dataset import CaptionedImage, captions_of
from sightline.encoders.region_cache import RegionCache
from sightline.models.interface import CaptionModel
from sightline.progress import progress
from sightline.regions import Regions
from sightline.support.calibration import calibrate
from sightline.support.fit import FEWEST, Sample, held_out_scores, thresholds
from sightline.support.foreign import BATCH, MEANING, ForeignClassifier, foreign_scores
from sightline.support.logistic import fit_logistic
from sightline.support.mentions import mentions
from sightline.support.swaps import Swapper
from sightline.support.word_classifier import table
from sightline.support.word_detector import WordDetector
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import Vocabulary

DOUBTED = 0.05  # at most this share of the words that people wrote is called not supported


@dataclass(frozen=True, eq=False)
class ForeignSample:
    """Words that people wrote and words that were swapped in, and the prior of all words."""

    sample: Sample
    prior: Tensor  # (V,)


def collect_foreign(
    model: CaptionModel,
    vocabulary: Vocabulary,
    images: Sequence[CaptionedImage],
    cache: RegionCache,
    reference_regions: Regions,
    detector: WordDetector | None = None,
    prior: Tensor | None = None,
    *,
    show_progress: bool = False,
) -> ForeignSample | None:
    """One caption of each picture, as it is and with a word of each kind swapped.

    Right are all words of the caption as it is, wrong those that were swapped in; what stands
    beside them is not counted again. Without a `prior`, it is that of these pictures; then each
    picture's own part of it is left out where the picture is scored. None if the captioner knows no
    word of the captions.
    """
    device = next(model.parameters()).device
    rows = cache.rows([cache.key(image.picture) for image in images])
    starts = range(0, len(rows), BATCH)
    work = progress(starts, "captioning", total=len(starts), unit="batch", show=show_progress)
    expected = torch.cat(
        [
            mentions(model, vocabulary, cache.regions(rows[n : n + BATCH]).to(device)).half()
            for n in work
        ]
    )
    total = expected.sum(0, dtype=torch.float32)
    swapper = Swapper(captions_of(images))
    scores: list[dict[str, float]] = []
    labels: list[tuple[bool, int, str]] = []
    for first in progress(
        starts, "swapping words", total=len(starts), unit="batch", show=show_progress
    ):
        captions: list[list[int]] = []
        asked: list[tuple[int, int | None]] = []  # the picture, and the place that was swapped
        for n, image in enumerate(images[first : first + BATCH]):
            texts = [text for text in image.captions if tokenize(text)]
            if not texts:
                continue
            said = texts[(first + n) % len(texts)]
            captions.append(vocabulary.encode(said))
            asked.append((n, None))
            for swap in swapper.swaps(said, texts, first + n):
                captions.append([vocabulary.id(word) for word in swap.words])
                asked.append((n, swap.place))
        here = expected[first : first + BATCH].float()
        without = (total - here) / max(len(rows) - 1, 1) if prior is None else prior
        scored = foreign_scores(
            model,
            vocabulary,
            cache.regions(rows[first : first + BATCH]).to(device),
            captions,
            [n for n, _ in asked],
            reference_regions,
            here,
            without,
            detector,
        )
        for caption, (n, swapped), words in zip(captions, asked, scored, strict=True):
            for place, single_scores in words.items():
                if swapped is None or place == swapped:
                    scores.append(single_scores)
                    word = vocabulary.words[caption[place]]
                    labels.append((swapped is None, first + n, word))
    if not scores:
        return None
    right, pictures, words_ = zip(*labels, strict=True)
    names = tuple(name for name in MEANING if name in scores[0])
    sample = Sample(names, table(scores, names), np.array(right), np.array(pictures), words_)
    return ForeignSample(sample, total / len(rows) if prior is None else prior)


def fit_foreign(collected: ForeignSample | None) -> ForeignClassifier | None:
    """The judge: weights, thresholds and calibration, on scores of words that it was not fitted to.

    Thresholds are those of a captioner's own words, but for one bound: of the words that people
    wrote, at most the share `DOUBTED` is called not supported. None if there are too few words.
    """
    if collected is None:
        return None
    sample = collected.sample
    wrong = int((~sample.right).sum())
    if min(wrong, len(sample.right) - wrong) < FEWEST:
        return None
    scores = held_out_scores(sample)
    seen, unsupported = thresholds(scores, sample.right)
    unsupported = min(unsupported, float(np.quantile(scores[sample.right], DOUBTED)))
    return ForeignClassifier(
        sample.names,
        fit_logistic(sample.scores, sample.right),
        seen,
        unsupported,
        collected.prior,
        tuple(calibrate(scores, sample.right)),
    )
