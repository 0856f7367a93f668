"""Encoding a dataset's pictures into a cache."""

import os

import numpy as np
import pytest
import torch
from PIL import Image

from sightline.data.scenes import make_scenes
from sightline.encoders.encode import encode_all, encode_pictures
from sightline.encoders.encoder import create_encoder
from sightline.encoders.region_cache import Mirrored, RegionCache, picture_key
from sightline.errors import DataError, PictureError


@pytest.fixture(scope="module")
def encoder():
    return create_encoder("efficientnet_lite0", size=64)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    paths = [folder / f"{number}.png" for number in range(10)]
    for path, scene in zip(paths, make_scenes(10, seed=0, size=80), strict=True):
        scene.picture.save(path)
    return paths


def contents(cache):
    return [(cache.folder / name).read_bytes() for name in ("vectors.f16", "index.bin")]


def test_the_cache_holds_what_the_encoder_gives(encoder, pictures, tmp_path):
    cache = RegionCache.for_encoder(encoder, tmp_path)
    assert encode_pictures(pictures, encoder, cache, batch_size=4, workers=0) == []
    assert len(cache) == 10
    prepared = [encoder.preprocessing.load(path) for path in pictures[:3]]
    pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared]))
    windows = torch.tensor([window for _, window in prepared])
    expected = encoder(pixels, windows)
    found = cache.regions(cache.rows([picture_key(path) for path in pictures[:3]]))
    torch.testing.assert_close(found.vectors, expected.vectors, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(found.boxes, expected.boxes)


def test_each_precision_has_a_cache_of_its_own(encoder, pictures, tmp_path):
    full, half = (encode_all(pictures, encoder, tmp_path, precision=p) for p in (32, "bf16"))
    assert full.folder != half.folder
    assert RegionCache(half.folder).precision == "bf16"
    assert RegionCache.for_encoder(encoder, tmp_path).folder == full.folder
    rows = full.rows([full.key(path) for path in pictures])
    exact, rounded = full.regions(rows).vectors, half.regions(rows).vectors
    error = (rounded - exact).norm() / exact.norm()
    assert 1e-3 < error < 0.1  # bf16 has eight bits of precision, and layers add up
    prepared = [encoder.preprocessing.load(path) for path in pictures]
    pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared]))
    windows = torch.tensor([window for _, window in prepared])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        expected = encoder(pixels, windows).vectors
    torch.testing.assert_close(rounded, expected.half().float(), rtol=0.02, atol=0.02)


def test_a_mirrored_picture_is_another_one(encoder, pictures, tmp_path):
    cache = RegionCache.for_encoder(encoder, tmp_path)
    turned = tmp_path / "turned.png"
    Image.open(pictures[0]).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(turned)
    given = [pictures[0], Mirrored(pictures[0]), turned]
    assert encode_pictures(given, encoder, cache, workers=0) == []
    plain, mirrored, by_hand = cache.regions(cache.rows([picture_key(p) for p in given])).vectors
    # (Resampling is not quite symmetric.)
    assert (mirrored - by_hand).norm() < 0.1 * (mirrored - plain).norm()


def test_any_number_of_workers_gives_the_same_bytes(encoder, pictures, tmp_path):
    caches = []
    for workers in (0, 2):
        cache = RegionCache.for_encoder(encoder, tmp_path / str(workers))
        encode_pictures(pictures, encoder, cache, batch_size=4, workers=workers)
        caches.append(contents(cache))
    assert caches[0] == caches[1]


def test_known_pictures_are_skipped_and_equal_ones_encoded_once(
    encoder, pictures, tmp_path, monkeypatch
):
    cache = RegionCache.for_encoder(encoder, tmp_path)
    encode_pictures(pictures[:4], encoder, cache, batch_size=4, workers=0)
    before = contents(cache)
    seen = []
    encode = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda x, w: seen.append(len(x)) or encode(x, w))
    encode_pictures(pictures[:4], encoder, cache, workers=0)
    assert seen == []
    assert contents(cache) == before
    copy = tmp_path / "copy.png"
    copy.write_bytes(pictures[5].read_bytes())
    encode_pictures([*pictures[:6], copy, pictures[5]], encoder, cache, workers=0)
    assert seen == [2]
    assert len(cache) == 6


@pytest.mark.parametrize("workers", [0, 2])
def test_files_that_have_not_changed_are_not_read_again(
    encoder, pictures, tmp_path, monkeypatch, workers
):
    monkeypatch.setattr("sightline.encoders.content_hashes._SETTLED_NS", -(10**12))
    cache = encode_all(pictures, encoder, tmp_path)
    rows = cache.rows([picture_key(path) for path in pictures])

    plain = os.open

    def fail(path, *arguments, **options):
        if path in pictures:
            raise OSError(5, "is read")
        return plain(path, *arguments, **options)

    monkeypatch.setattr(os, "open", fail)
    again = RegionCache.for_encoder(encoder, tmp_path)
    assert encode_pictures(pictures, encoder, again, workers=workers) == []
    assert (again.rows([again.key(path) for path in pictures]) == rows).all()
    with pytest.raises(PictureError, match="is read"):
        picture_key(pictures[0])


def test_what_another_process_added_meanwhile_is_not_encoded_again(encoder, pictures, tmp_path):
    cache = RegionCache.for_encoder(encoder, tmp_path)
    other = RegionCache(cache.folder)
    encode_pictures(pictures[:3], encoder, other, workers=0)
    encode_pictures(pictures[:3], encoder, cache, workers=0)
    assert (cache.folder / "index.bin").stat().st_size == 3 * 32


def test_going_on_makes_the_same_batches_as_never_stopping(encoder, pictures, tmp_path):
    whole = RegionCache.for_encoder(encoder, tmp_path / "whole")
    encode_pictures(pictures, encoder, whole, batch_size=4, workers=0)
    stopped = RegionCache.for_encoder(encoder, tmp_path / "stopped")
    encode_pictures(pictures[:4], encoder, stopped, batch_size=4, workers=0)
    encode_pictures(pictures, encoder, stopped, batch_size=4, workers=0)
    assert contents(stopped) == contents(whole)


def test_bad_pictures_are_reported_and_the_others_encoded(encoder, pictures, tmp_path):
    text, empty, cut = (tmp_path / f"{name}.jpg" for name in ("text", "empty", "cut"))
    text.write_text("this is no picture")
    empty.write_bytes(b"")
    cut.write_bytes(pictures[0].read_bytes()[:200])
    missing = tmp_path / "missing.jpg"
    mixed = [text, pictures[0], empty, cut, pictures[1], missing]
    cache = RegionCache.for_encoder(encoder, tmp_path / "cache")
    with pytest.raises(
        DataError, match=r"^4 pictures cannot be read, the first: .*data check --fix$"
    ):
        encode_all(mixed, encoder, tmp_path)
    errors = encode_pictures(mixed, encoder, cache, workers=2)
    assert len(cache) == 2
    assert len(errors) == 4
    for path, error in zip((text, empty, cut, missing), errors, strict=True):
        assert error.startswith(str(path))
        assert "\n" not in error


def test_pictures_in_memory(encoder, tmp_path):
    scenes = [scene.picture for scene in make_scenes(3, seed=0, size=40)]
    grey = Image.new("L", (30, 20), 90)
    cache = RegionCache.for_encoder(encoder, tmp_path)
    assert encode_pictures([*scenes, grey], encoder, cache, workers=0) == []
    assert len(cache.rows([picture_key(picture) for picture in (*scenes, grey)])) == 4
