"""Pictures unlike those a captioner knows: fitted, stored, told with the caption."""

import numpy as np
import pytest
import torch
from PIL import Image

import sightline
from sightline.data.unlike_photographs import KINDS, unlike_photographs
from sightline.errors import CheckpointError
from sightline.regions import Regions
from sightline.support.familiarity import (
    FILE,
    WARNED,
    Familiarity,
    fit_familiarity,
    load_familiarity,
    mean_region,
    save_familiarity,
)


def regions_of(means):
    vectors = torch.tensor(means, dtype=torch.float32)[:, None]
    return Regions(vectors, torch.ones(vectors.shape[:2]) > 0, torch.zeros(len(vectors), 1, 4))


def test_the_mean_region_is_that_of_the_visible_ones():
    regions = Regions(
        torch.tensor([[[2.0], [4.0], [100.0]]]),
        torch.tensor([[True, True, False]]),
        torch.zeros(1, 3, 4),
    )
    assert mean_region(regions).tolist() == [[3.0]]


def test_other_pictures_are_told_and_few_familiar_ones_are_taken_for_them():
    random = np.random.default_rng(0)
    familiar, others = random.normal(0, 1, (4000, 6)), random.normal(0, 1, (300, 6))
    others[:, 2] += 6
    familiarity = fit_familiarity(familiar, others)
    new, new_others = random.normal(0, 1, (40_000, 6)), random.normal(0, 1, (300, 6))
    new_others[:, 2] += 6
    assert np.mean(familiarity.unfamiliar(regions_of(new))) == pytest.approx(WARNED, abs=0.005)
    assert np.mean(familiarity.unfamiliar(regions_of(new_others))) > 0.97


def test_a_threshold_that_is_set_on_few_pictures_holds_for_others():
    # With about as many numbers as pictures, weights fit the pictures that they are fitted to
    # better than others, and those of a fold are smaller than those of all.
    shares = []
    for seed in range(16):
        random = np.random.default_rng(seed)
        familiar, others = random.normal(0, 1, (300, 150)), random.normal(0, 1, (100, 150))
        others[:, :3] += 4.0 * np.eye(3)[np.arange(100) % 3]
        familiarity = fit_familiarity(familiar, others)
        new = random.normal(0, 1, (5000, 150))
        shares.append(np.mean(familiarity.unfamiliar(regions_of(new))))
    assert np.mean(shares) == pytest.approx(WARNED, abs=0.005)


def test_it_is_stored_with_a_checkpoint(tmp_path):
    assert load_familiarity(tmp_path) is None
    save_familiarity(tmp_path, Familiarity(torch.tensor([1.5, -2.0]), 0.25))
    loaded = load_familiarity(tmp_path)
    assert loaded.weights.tolist() == [1.5, -2.0]
    assert loaded.bias == 0.25


@pytest.mark.parametrize("content", [b"", b"{}", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_file_is_one_line(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(CheckpointError, match="fit-support"):
        load_familiarity(tmp_path)


def test_a_file_of_no_numbers_is_one_line(tmp_path):
    save_familiarity(tmp_path, Familiarity(torch.tensor([float("nan")]), 0.0))
    with pytest.raises(CheckpointError, match="fit-support"):
        load_familiarity(tmp_path)


def test_captions_say_whether_the_picture_is_unfamiliar(fitted_checkpoint):
    captioner = sightline.load(fitted_checkpoint)
    picture = Image.new("RGB", (64, 64), "red")
    assert captioner.familiarity is not None
    for bias, unfamiliar in ((-1e9, False), (1e9, True)):
        captioner.familiarity = Familiarity(captioner.familiarity.weights, bias)
        caption = captioner.caption(picture)
        assert caption.unfamiliar is unfamiliar
        assert caption.to_json()["unfamiliar"] is unfamiliar
        assert captioner.read(picture, caption.text).unfamiliar is unfamiliar
    captioner.familiarity = None
    assert captioner.caption(picture).unfamiliar is None


def test_pictures_unlike_photographs_are_of_every_kind_and_repeatable():
    pictures = unlike_photographs(2 * len(KINDS))
    again = unlike_photographs(2 * len(KINDS))
    assert [picture.tobytes() for picture in pictures] == [picture.tobytes() for picture in again]
    assert len({picture.tobytes() for picture in pictures}) == 2 * len(KINDS)
    other = unlike_photographs(2, seed=1)
    assert other[0].tobytes() != pictures[0].tobytes()
    for picture in pictures:
        assert picture.mode == "RGB"
        assert np.asarray(picture).std() > 1  # something is drawn


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_many_of_each_kind_can_be_drawn(kind):
    sizes = {KINDS[kind](np.random.default_rng(seed)).size for seed in range(25)}
    assert len(sizes) == 1
