"""What training batches see of their pictures: regions from the cache, or of random cuts."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch.utils.data import DataLoader, Dataset

from sightline.data.dataset import CaptionedImage
from sightline.encoders.encoder import Encoder
from sightline.encoders.preprocessing import Preprocessing, Window, mirror
from sightline.encoders.region_cache import Mirrored, RegionCache
from sightline.encoders.workers import end_with_parent
from sightline.errors import DataError, PictureError
from sightline.regions import Regions
from sightline.text.tokenizer import tokenize

Chosen = list[tuple[int, bool]]  # the pictures of a batch, and whether each is mirrored


class RegionSource(Protocol):
    """Where the regions of training pictures come from."""

    def epoch(self, number: int, batches: Sequence[Chosen]) -> Iterator[Regions]:
        """The regions of each batch of an epoch, or of what is left of it."""


class CachedRegions:
    """Every picture encoded once, and read ever after."""

    def __init__(self, pictures: Sequence[Path | Image], cache: RegionCache, mirror: bool) -> None:
        self._cache = cache
        versions = [pictures, [Mirrored(picture) for picture in pictures] if mirror else []]
        self._rows = [
            cache.rows([cache.key(picture) for picture in version]) for version in versions
        ]

    def epoch(self, number: int, batches: Sequence[Chosen]) -> Iterator[Regions]:
        for batch in batches:
            rows = [self._rows[mirrored][picture] for picture, mirrored in batch]
            yield self._cache.regions(np.array(rows))


class CutRegions:
    """Another part of a picture in every epoch, at least `least` of its area.

    Worker processes decode and cut the pictures of the batches to come; `encoder` then sees them as
    they are used. Which part it is depends on the seed, the epoch and the picture alone, so a run
    that was interrupted goes on with the same parts.
    """

    def __init__(
        self,
        pictures: Sequence[Path | Image],
        encoder: Encoder,
        least: float,
        *,
        workers: int,
        seed: int,
    ) -> None:
        self._pictures, self._encoder, self._least = pictures, encoder, least
        self._workers, self._seed = workers, seed

    def epoch(self, number: int, batches: Sequence[Chosen]) -> Iterator[Regions]:
        device = next(self._encoder.parameters()).device
        preprocessing = self._encoder.preprocessing
        loader = DataLoader(
            _Cuts(self._pictures, preprocessing, self._least, (self._seed, number)),
            batch_sampler=batches,
            num_workers=self._workers,
            collate_fn=list,
            worker_init_fn=end_with_parent,
            generator=torch.Generator(),  # or it would draw from the one that dropout draws from
        )
        for cuts in loader:
            for cut in cuts:
                if isinstance(cut, PictureError):
                    raise DataError(f"{cut}; run sightline data check --fix")
            pixels = torch.from_numpy(np.stack([pixels for pixels, _ in cuts])).to(device)
            windows = torch.tensor([window for _, window in cuts], device=device)
            with torch.no_grad():
                regions = self._encoder(pixels, windows)
            yield regions


Cut = tuple[NDArray[np.uint8], Window]


class _Cuts(Dataset[Cut | PictureError]):
    """Parts of pictures, prepared for an encoder, or why not; runs in the worker processes."""

    def __init__(
        self,
        pictures: Sequence[Path | Image],
        preprocessing: Preprocessing,
        least: float,
        seed: tuple[int, int],
    ) -> None:
        self.pictures, self.preprocessing, self.least = pictures, preprocessing, least
        self.seed = seed

    def __getitem__(self, chosen: tuple[int, bool]) -> Cut | PictureError:
        picture, mirrored = chosen
        part = random_part(np.random.default_rng((*self.seed, picture)), self.least)
        try:
            cut = self.preprocessing.load(self.pictures[picture], part)
        except PictureError as error:
            return error
        return mirror(*cut) if mirrored else cut


def random_part(random: np.random.Generator, least: float) -> Window:
    """A part of at least this share of a picture's area, up to a third wider or narrower than it.

    >>> left, top, right, bottom = random_part(np.random.default_rng(0), 0.5)
    >>> 0.5 <= (right - left) * (bottom - top) <= 1
    True
    """
    area = random.uniform(least, 1)
    ratio = math.exp(random.uniform(-math.log(4 / 3), math.log(4 / 3)))
    width = min(max(math.sqrt(area * ratio), area), 1.0)
    height = area / width
    left, top = random.uniform(0, 1 - width), random.uniform(0, 1 - height)
    return (left, top, left + width, top + height)


def names_a_side(image: CaptionedImage) -> bool:
    """Whether a caption would be wrong of the mirrored picture."""
    return any({"left", "right"} & set(tokenize(caption)) for caption in image.captions)
