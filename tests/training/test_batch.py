"""Training batches."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from sightline.data.dataset import CaptionedImage
from sightline.data.encode import encode_pictures
from sightline.data.region_cache import RegionCache, View, picture_key
from sightline.data.scenes import make_scenes
from sightline.data.vocabulary import Vocabulary
from sightline.encoders.encoder import create_encoder
from sightline.training.batch import TrainingBatches, training_views
from sightline.training.recipe import BatchRecipe


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
    every = [*pictures, *(View(picture, mirrored=True) for picture in pictures)]
    encode_pictures(every, encoder, cache, workers=0)
    known = cache.regions(cache.rows([picture_key(picture) for picture in every])).vectors
    vocabulary = Vocabulary.build(images, min_count=1)
    batches = TrainingBatches(
        images,
        cache,
        vocabulary,
        BatchRecipe(by=by, size=1),
        max_length=9,
        mirror=True,
        seed=0,
    )
    seen = []  # which of `every`
    for epoch in range(20):
        for indices in batches.batches.epoch(epoch):
            batch = batches.load(indices)
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
        cache,
        Vocabulary.build(images, min_count=1),
        BatchRecipe(size=2, sort=sort),
        max_length=9,
        seed=0,
    )
    mixed = [
        len({i % 2 for i in batch}) == 2
        for epoch in range(3)
        for batch in batches.batches.epoch(epoch)
    ]
    assert any(mixed) != sort


def test_crops_are_a_picture_s_own_and_show_most_of_it() -> None:
    pictures = [scene.picture for scene in make_scenes(2, seed=0, size=64)]
    plain, one_sided = (
        CaptionedImage("", picture, (caption,))
        for picture, caption in zip(pictures, ("a ball", "a ball on the left"), strict=True)
    )
    whole, mirrored, *crops = training_views(plain, mirror=True, crops=40)
    assert whole is plain.picture
    assert mirrored == View(plain.picture, mirrored=True)
    views = [view for view in crops if isinstance(view, View)]
    assert [view.mirrored for view in views] == 20 * [False, True]
    left, top, right, bottom = torch.tensor([view.part for view in views]).T
    for start, end in ((left, right), (top, bottom)):
        assert start.min() >= 0
        assert end.max() <= 1
        assert 0.7 <= (end - start).min() < 0.75
        assert 0.95 < (end - start).max() <= 1
        assert start.max() > 0.1  # some to one side
        assert end.min() < 0.9  # and some to the other
    # The first few are the same, however many there are: a cache need not be made anew.
    assert training_views(plain, mirror=True, crops=3) == [whole, mirrored, *crops[:3]]
    _, copy, *others = training_views(one_sided, mirror=True, crops=40)
    assert copy is one_sided.picture
    assert not any(isinstance(view, View) and view.mirrored for view in others)
    assert isinstance(others[0], View)
    assert others[0].part != views[0].part
    assert training_views(plain, mirror=False, crops=0) == [plain.picture]
