"""Captions of cached pictures, and their scores: what a dev evaluation and a test row are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL.Image import Image

from sightline.captioner import RemoteCaptioner
from sightline.data.dataset import CaptionedImage
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.inference import inference
from sightline.encoders.region_cache import RegionCache
from sightline.encoders.trainable_stages import TrainableStages
from sightline.metrics.scoring import score
from sightline.models.interface import CaptionModel
from sightline.models.packed import pack
from sightline.progress import progress
from sightline.text.vocabulary import Vocabulary

METRICS = ("bleu", "rouge-l", "cider-d")


def caption_cached(
    model: CaptionModel,
    vocabulary: Vocabulary,
    images: Sequence[CaptionedImage],
    cache: RegionCache,
    options: BeamOptions,
    *,
    trainable: TrainableStages | None = None,
    batch_size: int = 64,
    show_progress: bool = False,
) -> list[str]:
    """The best caption of each picture, by beam search over its cached regions.

    Where the `trainable` of an encoder is being trained, what is cached is what goes into it.
    """
    rows = cache.rows([cache.key(image.picture) for image in images])
    device = next(model.parameters()).device
    captions: list[str] = []
    bar = progress(None, "captioning", total=len(rows), unit="picture", show=show_progress)
    with bar, inference(model):
        captioner = pack(model)
        for start in range(0, len(rows), batch_size):
            batch = cache.regions(rows[start : start + batch_size]).to(device)
            batch = trainable(batch) if trainable else batch
            hypotheses = beam_search(captioner, captioner.encode(batch), options)
            captions += [vocabulary.decode(best) for best in hypotheses.tokens[:, 0].tolist()]
            bar.update(len(batch))
    return captions


def caption_remote(
    captioner: RemoteCaptioner,
    pictures: Sequence[Path | Image],
    options: dict[str, Any],
    *,
    batch_size: int = 16,
    show_progress: bool = False,
) -> list[str]:
    """The caption of each picture by a server, which is sent them a few at a time."""
    captions: list[str] = []
    bar = progress(None, "captioning", total=len(pictures), unit="picture", show=show_progress)
    with bar:
        for start in range(0, len(pictures), batch_size):
            batch = pictures[start : start + batch_size]
            captions += [caption.text for caption in captioner.caption(batch, **options)]
            bar.update(len(batch))
    return captions


def score_captions(
    captions: Sequence[str],
    images: Sequence[CaptionedImage],
    metrics: Sequence[str] = METRICS,
) -> dict[str, float]:
    """Corpus scores by name, BLEU-1 … CIDEr-D, against the pictures' own captions."""
    references = [image.captions for image in images]
    return {name: result.corpus for name, result in score(captions, references, metrics).items()}
