"""Training batches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

from sightline.data.dataset import CaptionedImage, build_vocabulary
from sightline.data.scenes import make_scenes
from sightline.encoders.encode import encode_pictures
from sightline.encoders.encoder import create_encoder
from sightline.encoders.region_cache import Mirrored, RegionCache, picture_key
from sightline.recipe import BatchRecipe
from sightline.regions import Regions
from sightline.training.batch import TrainingBatches
from sightline.training.region_sources import CachedRegions, Chosen


@pytest.mark.parametrize("by", ["image", "length"])
def test_a_mirrored_picture_comes_half_of_the_time_unless_a_side_is_named(
    by: str, tmp_path: Path
) -> None:
    pictures: list[Image.Image] = [scene.picture for scene in make_scenes(2, seed=0, size=64)]
    images = (
        CaptionedImage("plain", pictures[0], ("a red ball", "a ball")),
        CaptionedImage("one-sided", pictures[1], ("a ball on the Left.", "a ball")),
    )
    encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
    cache = RegionCache.for_encoder(encoder, tmp_path)
    every = [*pictures, *map(Mirrored, pictures)]
    encode_pictures(every, encoder, cache, workers=0)
    known = cache.regions(cache.rows([picture_key(picture) for picture in every])).vectors
    vocabulary = build_vocabulary(images, min_count=1)
    batches = TrainingBatches(
        images,
        CachedRegions(pictures, cache, mirror=True),
        vocabulary,
        BatchRecipe(by=by, size=1),
        max_length=9,
        mirror=True,
        seed=0,
    )
    seen = []  # which of `every`
    for epoch in range(20):
        for batch in batches.epoch(epoch):
            (which,) = (n for n, v in enumerate(known) if torch.equal(v, batch.regions.vectors[0]))
            seen.append(which)
            assert batch.images is not None
            assert batch.images.tolist() == [which % 2]
            said = [vocabulary.decode(c) for c in batch.targets[0].tolist()]
            assert set(said) <= {"a ball", ["a red ball", "a ball on the left"][which % 2]}
    half = len(seen) // 2
    assert seen.count(0) + seen.count(2) == seen.count(1) == half
    assert half / 4 < seen.count(2) < 3 * half / 4
    assert 3 not in seen


@pytest.mark.parametrize("sort", [False, True])
def test_sorted_pictures_come_with_others_of_their_length(sort: bool, tmp_path: Path) -> None:
    pictures = [scene.picture for scene in make_scenes(8, seed=0, size=64)]
    captions = ["a ball", "a ball on a box"]
    images = tuple(
        CaptionedImage(str(n), picture, ("a", captions[n % 2]))
        for n, picture in enumerate(pictures)
    )
    encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
    cache = RegionCache.for_encoder(encoder, tmp_path)
    encode_pictures(pictures, encoder, cache, workers=0)
    batches = TrainingBatches(
        images,
        CachedRegions(pictures, cache, mirror=False),
        build_vocabulary(images, min_count=1),
        BatchRecipe(size=2, sort=sort),
        max_length=9,
        mirror=False,
        seed=0,
    )
    mixed = [
        len({i % 2 for i in batch}) == 2
        for epoch in range(3)
        for batch in batches.batches.epoch(epoch)
    ]
    assert any(mixed) != sort


def test_some_captions_of_a_picture_come_in_an_epoch_and_others_in_the_next() -> None:
    class Nothing:
        """Regions that nobody looks at."""

        def epoch(self, number: int, batches: list[Chosen]) -> Iterator[Regions]:
            for batch in batches:
                mask = torch.ones(len(batch), 1, dtype=torch.bool)
                yield Regions(torch.zeros(len(batch), 1, 1), mask, torch.zeros(len(batch), 1, 4))

    every = [["a ball", "a red ball on a box", "the ball"], ["a box", "the red box"]] * 4
    blank = Image.new("RGB", (1, 1))
    images = tuple(CaptionedImage(str(n), blank, tuple(own)) for n, own in enumerate(every))
    vocabulary = build_vocabulary(images, min_count=1)
    batches = TrainingBatches(
        images,
        Nothing(),
        vocabulary,
        BatchRecipe(size=2, captions=2, sort=True),
        max_length=9,
        mirror=False,
        seed=0,
    )
    said: dict[int, list[str]] = {n: [] for n in range(len(images))}
    for epoch in (0, 1):
        whole = list(batches.epoch(epoch))
        for batch, again in zip(whole[2:], batches.epoch(epoch, start=2), strict=True):
            assert torch.equal(batch.targets, again.targets)
        for batch in whole:
            assert batch.targets.shape[1] == 2
            assert batch.images is not None
            for image, captions in zip(batch.images.tolist(), batch.targets, strict=True):
                said[image] += [vocabulary.decode(caption) for caption in captions.tolist()]
        longest = [batch.targets.shape[2] == 7 for batch in whole]  # sorted by what is said
        with_longest = sum("a red ball on a box" in said[n][2 * epoch :] for n in said)
        assert sum(longest) == -(-with_longest // 2)
    for image, captions in said.items():
        assert len(captions) == 4
        assert set(captions) == set(every[image])
