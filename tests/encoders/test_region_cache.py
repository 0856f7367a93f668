"""The region cache: what goes in comes out, and no moment is a bad one to be killed at."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sightline.encoders.preprocessing import Preprocessing
from sightline.encoders.region_cache import RegionCache, picture_key
from sightline.errors import CacheError, PictureError
from sightline.regions import Regions, grid_boxes

GRID, DIM = (2, 3), 5
ROW_BYTES, RECORD_BYTES = 2 * 3 * 5 * 2, 16 + 4 * 4


@dataclass
class FakeEncoder:
    """As much of an encoder as a cache asks for."""

    name: str = "net"
    stage: str = "stage4"
    fingerprint: str = "0123456789abcdef"
    grid: tuple[int, int] = GRID
    dim: int = DIM
    preprocessing: Preprocessing = field(default_factory=lambda: Preprocessing(64))
    spec: dict = field(default_factory=lambda: {"name": "net"})


def batch(*numbers: int):
    """Keys, regions and windows of made-up pictures."""
    keys = [bytes([number]) * 16 for number in numbers]
    random = [np.random.default_rng(number) for number in numbers]
    vectors = torch.from_numpy(np.stack([r.normal(size=(6, DIM)) for r in random])).float()
    windows = np.stack([np.sort(r.random(4)).astype(np.float32) for r in random])
    boxes = grid_boxes(*GRID, torch.from_numpy(windows))
    return keys, Regions(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool), boxes), windows


@pytest.fixture
def cache(tmp_path):
    return RegionCache.for_encoder(FakeEncoder(), tmp_path)


def add(cache, *batches):
    with cache.appending() as append:
        for numbers in batches:
            append(*batch(*numbers))


def assert_holds(cache, *numbers):
    keys, regions, _ = batch(*numbers)
    found = cache.regions(cache.rows(keys))
    assert torch.equal(found.vectors, regions.vectors.half().float())
    assert found.vectors.dtype == torch.float32
    torch.testing.assert_close(found.boxes, regions.boxes, rtol=0, atol=0)
    assert found.mask.all()


def test_what_goes_in_comes_out_in_half_precision(cache):
    assert len(cache) == 0
    add(cache, (1, 2, 3), (4,))
    assert len(cache) == 4
    assert_holds(cache, 1, 2, 3, 4)
    assert_holds(cache, 4, 2)
    assert_holds(RegionCache(cache.folder), 3, 3, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is mapped")
def test_what_was_read_does_not_stay_in_memory(cache):
    add(cache, (1, 2, 3))
    assert_holds(cache, 1, 2, 3)
    process = Path("/proc/self")
    assert str(cache.folder) not in (process / "maps").read_text()
    opened = [os.readlink(entry) for entry in (process / "fd").iterdir() if entry.is_symlink()]
    assert not [name for name in opened if name.startswith(str(cache.folder))]


def test_a_cache_that_is_deleted_or_cut_short_while_it_is_read(cache):
    add(cache, (1, 2))
    rows = cache.rows(batch(1, 2)[0])
    with (cache.folder / "vectors.f16").open("r+b") as file:
        file.truncate(2 * ROW_BYTES - 1)
    with pytest.raises(CacheError, match="shorter than its index"):
        cache.regions(rows)
    (cache.folder / "vectors.f16").unlink()
    with pytest.raises(CacheError, match=r"cannot be read \(No such file"):
        cache.regions(rows)
    assert len(cache.regions(rows[:0])) == 0


def test_files_are_of_the_described_layout(cache):
    add(cache, (1, 2))
    assert (cache.folder / "vectors.f16").stat().st_size == 2 * ROW_BYTES
    assert (cache.folder / "index.bin").stat().st_size == 2 * RECORD_BYTES
    assert (cache.folder / "index.bin").read_bytes()[:16] == bytes([1]) * 16
    description = json.loads((cache.folder / "encoder.json").read_text())
    assert description == {"encoder": {"name": "net"}, "grid": [2, 3], "dim": 5}


def test_a_reader_sees_what_another_process_added_after_reload(cache):
    reader = RegionCache(cache.folder)
    add(cache, (1,))
    assert len(reader) == 0
    reader.reload()
    assert_holds(reader, 1)


def test_pictures_that_are_not_there_are_counted(cache):
    add(cache, (1,))
    with pytest.raises(CacheError, match="2 of 3 pictures are not encoded; run sightline encode"):
        cache.rows(batch(1, 2, 3)[0])


# What a process killed while it added a second batch may have left behind.
TORN = [
    (0, 0),
    (1, 0),
    (ROW_BYTES - 1, 0),
    (ROW_BYTES, 0),
    (ROW_BYTES + 7, 0),
    (2 * ROW_BYTES, 0),
    (2 * ROW_BYTES, 1),
    (2 * ROW_BYTES, RECORD_BYTES - 1),
    (2 * ROW_BYTES, RECORD_BYTES),
    (2 * ROW_BYTES, RECORD_BYTES + 1),
]


@pytest.mark.parametrize(("vector_bytes", "index_bytes"), TORN)
def test_a_torn_tail_is_cut_off_and_work_goes_on(tmp_path, vector_bytes, index_bytes):
    whole = RegionCache.for_encoder(FakeEncoder(), tmp_path / "whole")
    add(whole, (1, 2), (3, 4), (5,))
    torn = RegionCache.for_encoder(FakeEncoder(), tmp_path / "torn")
    add(torn, (1, 2))
    for name, at, extra in (
        ("vectors.f16", 2 * ROW_BYTES, vector_bytes),
        ("index.bin", 2 * RECORD_BYTES, index_bytes),
    ):
        content = (whole.folder / name).read_bytes()[at : at + extra]
        with (torn.folder / name).open("ab") as file:
            file.write(content)

    opened = RegionCache(torn.folder)
    complete = 2 + index_bytes // RECORD_BYTES
    assert len(opened) == complete
    assert_holds(opened, 1, 2)
    rest = [number for number in (3, 4) if number > complete]
    add(opened, rest, (5,))
    for name in ("vectors.f16", "index.bin"):
        assert (torn.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert_holds(opened, 1, 2, 3, 4, 5)


def test_an_index_longer_than_its_vectors_is_refused(cache):
    add(cache, (1, 2))
    with (cache.folder / "vectors.f16").open("r+b") as file:
        file.truncate(2 * ROW_BYTES - 1)
    with pytest.raises(CacheError, match=r"vectors\.f16: shorter than its index; delete"):
        RegionCache(cache.folder)
    (cache.folder / "vectors.f16").unlink()
    with pytest.raises(CacheError, match="shorter than its index"):
        RegionCache(cache.folder)


def test_one_writer_at_a_time(cache):
    other = RegionCache(cache.folder)
    with cache.appending() as append:
        append(*batch(1))
        with (
            pytest.raises(CacheError, match=r"process \d+ on .* is writing to it"),
            other.appending(),
        ):
            pass
    add(other, (2,))  # the lock is free again, and the first batch was not lost
    assert_holds(other, 1, 2)


def test_an_error_while_writing_keeps_earlier_batches_and_frees_the_lock(cache):
    def fail():
        with cache.appending() as append:
            append(*batch(1))
            raise OSError(28, "of the caller's own")

    with pytest.raises(OSError, match="caller's own"):
        fail()
    add(cache, (2,))
    assert_holds(cache, 1, 2)


def test_a_full_disk_is_one_line_and_loses_the_last_batch_only(cache, monkeypatch):
    add(cache, (1,))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with cache.appending() as append:
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(CacheError, match=r"cannot be written \(No space left on device\)"):
            append(*batch(2))
        monkeypatch.undo()
    add(cache, (3,))
    assert len(cache) == 2
    assert_holds(cache, 1, 3)


def test_a_place_that_cannot_hold_a_cache(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="cannot be written"):
        RegionCache.for_encoder(FakeEncoder(), tmp_path / "file")


def test_other_settings_are_another_cache(tmp_path):
    settings = [
        {},
        {"name": "other"},
        {"stage": "stage5"},
        {"fingerprint": "f" * 16},
        {"preprocessing": Preprocessing(96)},
    ]
    folders = {RegionCache.for_encoder(FakeEncoder(**s), tmp_path).folder for s in settings}
    assert len(folders) == len(settings)


def test_no_cache_or_a_damaged_description(tmp_path, cache):
    with pytest.raises(CacheError, match="no region cache; create one with sightline encode"):
        RegionCache(tmp_path / "nowhere")
    wrong = ("{", "[]", "{}", '{"grid": [], "dim": 1}', '{"grid": [1, 1], "dim": "x"}')
    for content in (*wrong, '{"grid": [1, 1], "dim": 1, "precision": 8}'):
        (cache.folder / "encoder.json").write_text(content)
        with pytest.raises(CacheError, match=r"encoder\.json: "):
            RegionCache(cache.folder)


class TestPictureKey:
    def test_goes_by_content_and_not_by_name(self, tmp_path):
        for name, colour in {"a.png": "red", "b.png": "red", "c.png": "blue"}.items():
            Image.new("RGB", (4, 4), colour).save(tmp_path / name)
        a, b, c = (picture_key(tmp_path / name) for name in ("a.png", "b.png", "c.png"))
        assert a == b != c
        assert len(a) == 16

    def test_of_pictures_in_memory(self):
        wide, high = Image.new("RGB", (4, 2)), Image.new("RGB", (2, 4))
        assert picture_key(wide) == picture_key(wide.copy())
        assert len({picture_key(wide), picture_key(high), picture_key(wide.convert("L"))}) == 3

    @pytest.mark.parametrize("name", ["nowhere.jpg", "nul\0.jpg"])
    def test_of_a_file_that_cannot_be_read(self, tmp_path, name):
        with pytest.raises(PictureError, match="cannot be read"):
            picture_key(tmp_path / name)
