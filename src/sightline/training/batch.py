"""Training batches: regions of pictures, captions as word ids."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.data.batches import Batches, captions_in_turn, image_batches, length_batches
from sightline.data.dataset import CaptionedImage
from sightline.recipe import BatchRecipe
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, START, Vocabulary
from sightline.training.region_sources import RegionSource, names_a_side


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
        source: RegionSource,
        vocabulary: Vocabulary,
        recipe: BatchRecipe,
        *,
        max_length: int,
        mirror: bool,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.source, self.recipe, self.seed = source, recipe, seed
        # What is on the left is not on the left in a mirror.
        self.one_sided = [names_a_side(image) for image in images] if mirror else []
        self.captions = [
            [_target(vocabulary, caption, max_length) for caption in image.captions]
            for image in images
        ]
        share = {"batch_size": recipe.size, "seed": seed, "rank": rank, "world_size": world_size}
        share["versions"] = 2 if mirror else 1
        self.batches: Batches
        if recipe.by == "image":
            self.items = [(i, slice(None)) for i in range(len(images))]
            self.batches = image_batches(self._lengths(self.captions), **share)
        else:
            self.items = [
                (i, slice(k, k + 1))
                for i, image_captions in enumerate(self.captions)
                for k in range(len(image_captions))
            ]
            lengths = [len(self.captions[i][k.start]) for i, k in self.items]
            self.batches = length_batches(lengths, **share)

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, number: int, start: int = 0) -> Iterator[CaptionBatch]:
        """This process's part of each batch of an epoch, from batch `start` on.

        An empty part becomes one item of weight zero.
        """
        captions, lengths = self.captions, None
        if self.recipe.captions is not None:
            captions = self._captions(self.recipe.captions, number)
            lengths = self._lengths(captions)
        parts = list(self.batches.epoch(number, start, lengths))
        chosen = [self._choose(part if len(part) else np.array([0])) for part in parts]
        pictures = [[(i, mirrored) for i, mirrored, _ in batch] for batch in chosen]
        encoded = self.source.epoch(number, pictures)
        for part, batch, regions in zip(parts, chosen, encoded, strict=True):
            inputs, targets = self._words([captions[i][which] for i, _, which in batch])
            images = torch.tensor([i for i, _, _ in batch])
            yield CaptionBatch(regions, inputs, targets, float(len(part) > 0), images)

    def _captions(self, number: int, epoch: int) -> list[list[list[int]]]:
        """So many captions of every picture, as an epoch has them."""
        counts = [len(image_captions) for image_captions in self.captions]
        turns = captions_in_turn(counts, number, seed=self.seed, epoch=epoch)
        return [
            [image_captions[k] for k in turn]
            for image_captions, turn in zip(self.captions, turns, strict=True)
        ]

    def _lengths(self, captions: list[list[list[int]]]) -> list[int]:
        """What pictures are sorted by: the length of the longest caption, or nothing."""
        return [
            max(map(len, image_captions)) if self.recipe.sort else 0 for image_captions in captions
        ]

    def _choose(self, indices: NDArray[np.int64]) -> list[tuple[int, bool, slice]]:
        """Pictures, whether they are mirrored, and which of their captions are to be said."""
        chosen = []
        for version, item in zip(*np.divmod(indices, len(self.items)), strict=True):
            image, which = self.items[item]
            chosen.append((image, bool(version) and not self.one_sided[image], which))
        return chosen

    def _words(self, captions: list[list[list[int]]]) -> tuple[Tensor, Tensor]:
        """What the model is given of captions, and what it should say."""
        most, longest = (
            max(map(len, captions)),
            max(len(c) for image_captions in captions for c in image_captions),
        )
        targets = torch.full((len(captions), most, longest), PAD)
        for b, image_captions in enumerate(captions):
            for k, caption in enumerate(image_captions):
                targets[b, k, : len(caption)] = torch.tensor(caption)
        start = torch.full_like(targets[..., :1], START)
        return torch.cat([start, targets[..., :-1]], -1), targets


def _target(vocabulary: Vocabulary, caption: str, max_length: int) -> list[int]:
    """The caption and its end word; a caption that is cut does not end."""
    words = vocabulary.encode(caption)
    return [*words, END] if len(words) <= max_length else words[:max_length]
