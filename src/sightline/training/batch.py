"""Training batches: regions from the cache, captions as word ids."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.data.batches import Batches, image_batches, length_batches
from sightline.data.dataset import CaptionedImage
from sightline.data.region_cache import Mirrored, RegionCache, picture_key
from sightline.data.vocabulary import END, PAD, START, Vocabulary
from sightline.encoders.regions import Regions
from sightline.metrics.tokenizer import tokenize
from sightline.training.recipe import BatchRecipe


@dataclass(frozen=True)
class CaptionBatch:
    """B pictures with K captions each: what the model is given, and what it should say."""

    regions: Regions
    inputs: Tensor  # (B, K, T): the start word, then the caption
    targets: Tensor  # (B, K, T): the caption, then the end word; padding where there is nothing
    weight: float = 1.0  # 0 for the stand-in of a process that has no part of the batch
    images: Tensor | None = None  # (B,): which training picture each one is

    def to(self, device: torch.device) -> "CaptionBatch":
        return CaptionBatch(
            self.regions.to(device),
            self.inputs.to(device),
            self.targets.to(device),
            self.weight,
            self.images,
        )

    @property
    def tokens(self) -> Tensor:
        """How many words there are to be said, the end words included."""
        return self.weight * (self.targets != PAD).sum()

    @property
    def captions(self) -> Tensor:
        """How many captions there are."""
        return self.weight * (self.targets[..., 0] != PAD).sum()


class TrainingBatches:
    """The training captions of a dataset in batches, over and over."""

    def __init__(
        self,
        images: tuple[CaptionedImage, ...],
        cache: RegionCache,
        vocabulary: Vocabulary,
        recipe: BatchRecipe,
        *,
        max_length: int,
        mirror: bool,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.cache = cache
        rows = cache.rows([picture_key(image.picture) for image in images])
        self.rows = rows[None]  # (versions, pictures)
        if mirror:
            mirrored = cache.rows([picture_key(Mirrored(image.picture)) for image in images])
            # What is on the left is not on the left in a mirror.
            one_sided = np.array([_names_a_side(image) for image in images])
            self.rows = np.stack([rows, np.where(one_sided, rows, mirrored)])
        self.captions = [
            [_target(vocabulary, caption, max_length) for caption in image.captions]
            for image in images
        ]
        share = {"batch_size": recipe.size, "seed": seed, "rank": rank, "world_size": world_size}
        share["versions"] = len(self.rows)
        self.batches: Batches
        if recipe.by == "image":
            self.items = [(i, slice(None)) for i in range(len(images))]
            longest = [max(map(len, own)) if recipe.sort else 0 for own in self.captions]
            self.batches = image_batches(longest, **share)
        else:
            self.items = [
                (i, slice(k, k + 1)) for i, own in enumerate(self.captions) for k in range(len(own))
            ]
            lengths = [len(self.captions[i][k.start]) for i, k in self.items]
            self.batches = length_batches(lengths, **share)

    def __len__(self) -> int:
        return len(self.batches)

    def load(self, indices: NDArray[np.int64]) -> CaptionBatch:
        """One process's part of a batch; an empty part becomes one item of weight zero."""
        weight = float(len(indices) > 0)
        versions, indices = np.divmod(indices if len(indices) else np.array([0]), len(self.items))
        chosen = [self.items[i] for i in indices]
        captions = [self.captions[image][which] for image, which in chosen]
        most, longest = max(map(len, captions)), max(len(c) for own in captions for c in own)
        targets = torch.full((len(chosen), most, longest), PAD)
        for b, own in enumerate(captions):
            for k, caption in enumerate(own):
                targets[b, k, : len(caption)] = torch.tensor(caption)
        start = torch.full_like(targets[..., :1], START)
        inputs = torch.cat([start, targets[..., :-1]], -1)
        images = [image for image, _ in chosen]
        regions = self.cache.regions(self.rows[versions, images])
        return CaptionBatch(regions, inputs, targets, weight, torch.tensor(images))


def _names_a_side(image: CaptionedImage) -> bool:
    return any({"left", "right"} & set(tokenize(caption)) for caption in image.captions)


def _target(vocabulary: Vocabulary, caption: str, max_length: int) -> list[int]:
    """The caption and its end word; a caption that is cut does not end."""
    words = vocabulary.encode(caption)
    return [*words, END] if len(words) <= max_length else words[:max_length]
