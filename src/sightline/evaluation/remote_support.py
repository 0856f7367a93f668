"""The check of a captioner behind an HTTP API, fitted to what its server says."""

from collections.abc import Sequence

import numpy as np
import torch

from sightline.captioner import RemoteCaptioner
from sightline.data.dataset import CaptionedImage
from sightline.errors import DataError
from sightline.metrics.word_labels import label_words
from sightline.progress import progress
from sightline.regions import Regions
from sightline.support.fit import Sample
from sightline.support.word_classifier import table
from sightline.text.stop_words import is_content

# It is sent a blank; nothing of it is kept.
NO_REGIONS = Regions(torch.zeros(1, 1, 1), torch.ones(1, 1) > 0, torch.zeros(1, 1, 4))


def collect_remote(
    captioner: RemoteCaptioner, images: Sequence[CaptionedImage], *, show_progress: bool = False
) -> Sample:
    """Ask for a caption of each picture; the scores and labels of its content words."""
    scores: list[dict[str, float]] = []
    right: list[bool] = []
    pictures: list[int] = []
    words: list[str] = []
    bar = progress(None, "checking", total=len(images), unit="picture", show=show_progress)
    with bar:
        for number, image in enumerate(images):
            caption = captioner.caption(image.picture)
            assert caption.picture is not None
            said = [word.text for word in caption.words if is_content(word.text)]
            scores += captioner.word_scores(caption.picture, caption)
            right += label_words(said, image.captions)
            pictures += [number] * len(said)
            words += said
            bar.update(1)
    if not words:
        raise DataError("the captions have no content words: there is nothing to check")
    names = tuple(name for name in scores[0] if all(name in each for each in scores))
    return Sample(names, table(scores, names), np.array(right), np.array(pictures), tuple(words))
