"""What training sees of its pictures, from the cache or cut at random."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from sightline.data.scenes import make_scenes
from sightline.encoders.encode import encode_all
from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.region_cache import Mirrored
from sightline.errors import DataError
from sightline.regions import Regions
from sightline.training.region_sources import CachedRegions, Chosen, CutRegions, random_part

BATCHES: list[Chosen] = [[(0, False), (2, True)], [(1, True)], [(3, False), (0, True)]]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder("efficientnet_lite0", stage="stage4", size=64)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path | Image.Image]:
    """Two in memory and two files, none of them square."""
    drawn = [scene.picture.resize((150, 100)) for scene in make_scenes(4, seed=0, size=64)]
    paths = [tmp_path_factory.mktemp("pictures") / f"{n}.png" for n in (2, 3)]
    for path, picture in zip(paths, drawn[2:], strict=True):
        picture.save(path)
    return [*drawn[:2], *paths]


def opened(picture: Path | Image.Image) -> Image.Image:
    return (Image.open(picture) if isinstance(picture, Path) else picture).convert("RGB")


def windows_of(regions: Regions) -> torch.Tensor:
    return torch.cat([regions.boxes[:, 0, :2], regions.boxes[:, -1, 2:]], -1)


@pytest.mark.parametrize("workers", [0, 2])
def test_cuts_of_the_whole_are_what_is_in_the_cache(
    pictures: list[Path | Image.Image], encoder: Encoder, tmp_path: Path, workers: int
) -> None:
    cache = encode_all([*pictures, *map(Mirrored, pictures)], encoder, tmp_path)
    cached = CachedRegions(pictures, cache, mirror=True).epoch(0, BATCHES)
    cut = CutRegions(pictures, encoder, 1.0, workers=workers, seed=0).epoch(0, BATCHES)
    for expected, found in zip(cached, cut, strict=True):
        torch.testing.assert_close(found.vectors, expected.vectors, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(found.boxes, expected.boxes)
        assert not found.vectors.is_inference()  # they can be trained with


def test_a_cut_is_of_the_part_that_its_boxes_say(
    pictures: list[Path | Image.Image], encoder: Encoder
) -> None:
    source = CutRegions(pictures, encoder, 0.3, workers=0, seed=0)
    for batch, regions in zip(BATCHES, source.epoch(0, BATCHES), strict=True):
        for n, (picture, mirrored) in enumerate(batch):
            shown = opened(pictures[picture])
            shown = ImageOps.mirror(shown) if mirrored else shown
            window = windows_of(regions)[n]
            assert 0.3 <= (window[2] - window[0]) * (window[3] - window[1]) < 1
            pixels, _ = encoder.preprocessing.prepare(shown, tuple(window.tolist()))
            with torch.no_grad():
                expected = encoder(torch.from_numpy(pixels)[None], window[None]).vectors[0]
            likeness = torch.nn.functional.cosine_similarity(regions.vectors[n], expected)
            assert likeness.min() > 0.99


def test_a_part_depends_on_seed_epoch_and_picture_alone(
    pictures: list[Path | Image.Image], encoder: Encoder
) -> None:
    def windows(seed: int, epoch: int, batches: list[Chosen]) -> list[list[float]]:
        source = CutRegions(pictures, encoder, 0.3, workers=0, seed=seed)
        return [row for r in source.epoch(epoch, batches) for row in windows_of(r).tolist()]

    first = windows(0, 0, BATCHES)
    assert windows(0, 0, BATCHES[1:]) == first[2:]  # as when a run goes on from there
    for seed, epoch in ((1, 0), (0, 1)):
        others = windows(seed, epoch, BATCHES)
        assert all(own != other for own, other in zip(first, others, strict=True))


def test_a_picture_that_cannot_be_read_is_one_clear_line(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    source = CutRegions([tmp_path / "empty.jpg"], encoder, 0.3, workers=1, seed=0)
    with pytest.raises(DataError, match=r"empty\.jpg is empty.*run sightline data check") as caught:
        next(source.epoch(0, [[(0, False)]]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("least", [0.2, 0.9])
def test_parts_are_of_all_sizes_places_and_shapes(least: float) -> None:
    random = np.random.default_rng(0)
    parts = np.array([random_part(random, least) for _ in range(2000)])
    assert parts.min() >= 0
    assert parts.max() <= 1
    width, height = parts[:, 2] - parts[:, 0], parts[:, 3] - parts[:, 1]
    area = width * height
    assert area.min() >= least
    assert abs(area.mean() - (least + 1) / 2) < 0.02
    assert abs((parts[:, 0] + parts[:, 2]).mean() - 1) < 0.02  # as often left as right
    assert abs((width > height).mean() - 0.5) < 0.05
    assert (width / height).max() < 16 / 9 + 0.01
