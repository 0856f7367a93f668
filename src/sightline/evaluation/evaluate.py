"""Caption a split and score the captions: a row of a table."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.captioner import Captioner, RemoteCaptioner
from sightline.data.dataset import CaptionedImage
from sightline.decoding.beam import BeamOptions
from sightline.encoders.encode import encode_all
from sightline.errors import DataError
from sightline.evaluation.captioning import caption_cached, caption_remote
from sightline.files import atomic_write
from sightline.metrics.diversity import diversity
from sightline.metrics.score import Score, number
from sightline.metrics.scoring import REFERENCE_FREE, check_metrics, score


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Captions of a split, and their scores."""

    split: str
    images: Sequence[CaptionedImage]
    captions: Sequence[str]
    options: BeamOptions
    scores: Sequence[Score] = ()

    def summary(self) -> dict[str, Any]:
        """Plain JSON: the scores of the whole split."""
        return {
            "split": self.split,
            "pictures": len(self.images),
            "beam": self.options.beam,
            "length_power": self.options.length_power,
            "no_repeat_ngram": self.options.constraints.no_repeat_ngram,
            "scores": {each.name: number(each.corpus) for each in self.scores},
            # Captions trained on rewards are known to end in "with a" and the like.
            "bad_endings": diversity(self.captions).bad_endings,
        }

    def write_captions(self, folder: Path) -> None:
        """`captions.json`, in COCO's results format."""
        rows = zip(self.images, self.captions, strict=True)
        content = [{"image_id": image.id, "caption": caption} for image, caption in rows]
        with atomic_write(folder / "captions.json") as file:
            json.dump(content, file, ensure_ascii=False)

    def write_scores(self, folder: Path) -> None:
        """`scores.json`, and `per-image.csv` with a row for each picture."""
        with atomic_write(folder / "per-image.csv") as file:
            writer = csv.writer(file)
            writer.writerow(["image_id", "caption", *(each.name for each in self.scores)])
            for row, (image, caption) in enumerate(zip(self.images, self.captions, strict=True)):
                values = (number(round(float(each.per_image[row]), 6)) for each in self.scores)
                writer.writerow([image.id, caption, *values])
        with atomic_write(folder / "scores.json") as file:
            json.dump(self.summary(), file, indent=1)


def evaluate(
    captioner: Captioner,
    images: Sequence[CaptionedImage],
    metrics: Sequence[str],
    *,
    split: str = "test",
    cache: Path | None = None,
    folder: Path | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Evaluation:
    """Caption pictures from their cached regions, encoding those that are not cached yet.

    `options` are fields of `BeamOptions`. A metric that is not installed, or needs a CLIP model, is
    refused before the work begins. With a `folder`, captions are written before they are scored.
    Pictures without captions, such as those of a test server, are captioned and not scored.

    >>> evaluate(captioner, dataset.split("test"), ["cider-d"]).summary()  # doctest: +SKIP
    {'split': 'test', 'pictures': 1000, …}
    """
    for name in check_metrics(metrics):
        if name in REFERENCE_FREE:
            raise DataError(
                f"{name} needs a CLIP model: evaluate without it, then use sightline score "
                f"captions.json --metrics {name} --clip FOLDER --refs DATASET"
            )
    search = captioner.options.changed(options)
    pictures = [image.picture for image in images]
    if isinstance(captioner, RemoteCaptioner):
        captions = caption_remote(captioner, pictures, options, show_progress=show_progress)
    else:
        regions = encode_all(pictures, captioner.encoder, cache, show_progress=show_progress)
        captions = caption_cached(
            *(captioner.model, captioner.vocabulary, images, regions, search),
            show_progress=show_progress,
        )
    evaluation = Evaluation(split, images, captions, search)
    if folder is not None:
        evaluation.write_captions(folder)
    if not any(image.captions for image in images):
        return evaluation
    scores = score(captions, [image.captions for image in images], metrics)
    evaluation = Evaluation(split, images, captions, search, tuple(scores.values()))
    if folder is not None:
        evaluation.write_scores(folder)
    return evaluation
