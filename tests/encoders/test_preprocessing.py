"""Pixels and windows: what part of a picture an encoder sees, and that it can say where."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sightline.encoders.preprocessing import WHOLE, Preprocessing
from sightline.pictures import open_picture
from sightline.regions import grid_boxes

EXAMPLES = Path(__file__).parents[2] / "examples" / "others"


def spot(width: int, height: int, x: float, y: float) -> Image.Image:
    """A black picture with a small white disc at a place given in picture fractions."""
    rows, columns = np.mgrid[:height, :width]
    distance = np.hypot(columns + 0.5 - x * width, rows + 0.5 - y * height)
    disc = (distance < 0.02 * min(width, height)).astype(np.uint8) * 255
    return Image.fromarray(disc).convert("RGB")


@pytest.mark.parametrize("shape", [(613, 211), (187, 540), (300, 300), (97, 64)])
@pytest.mark.parametrize("fit", ["squash", "crop"])
@pytest.mark.parametrize("place", [(0.5, 0.5), (0.35, 0.45), (0.52, 0.61)])
@pytest.mark.parametrize("part", [WHOLE, (0.0, 0.2, 0.8, 1.0)])
def test_a_spot_lands_in_the_cell_whose_box_contains_it(shape, fit, place, part):
    preprocessing = Preprocessing(size=224, fit=fit)
    x, y = place
    pixels, window = preprocessing.prepare(spot(*shape, x, y), part)
    if not (window[0] < x < window[2] and window[1] < y < window[3]):
        pytest.fail("the test must place its spots inside the crop")
    rows, columns = pixels[..., 0].nonzero()
    weights = pixels[rows, columns, 0].astype(float)
    centre = np.average(columns + 0.5, weights=weights), np.average(rows + 0.5, weights=weights)
    cell = int(centre[1] / 224 * 14) * 14 + int(centre[0] / 224 * 14)
    box = grid_boxes(14, 14, torch.tensor([window]))[0, cell]
    slack = 0.004  # half a pixel of the smaller pictures
    assert box[0] - slack <= x <= box[2] + slack
    assert box[1] - slack <= y <= box[3] + slack


def test_squash_shows_everything_and_crop_the_centre_of_paper_1():
    picture = Image.new("RGB", (512, 256))
    assert Preprocessing(224).prepare(picture)[1] == (0.0, 0.0, 1.0, 1.0)
    # Short side 256 -> the 224 in its middle; of the long side 512, the same 224 pixels.
    left, top, right, bottom = Preprocessing(224, "crop").prepare(picture)[1]
    assert (left * 512, right * 512) == (144, 368)
    assert (top * 256, bottom * 256) == (16, 240)


def test_a_part_is_of_what_would_be_shown():
    picture, part = Image.new("RGB", (512, 256)), (0.25, 0.5, 1.0, 0.75)
    assert Preprocessing(224).prepare(picture, part)[1] == part
    left, top, right, bottom = Preprocessing(224, "crop").load(picture, part)[1]
    assert (left * 512, right * 512) == (144 + 56, 368)
    assert (top * 256, bottom * 256) == (16 + 112, 16 + 168)


def test_crop_equals_resizing_then_cutting():
    picture = open_picture(EXAMPLES / "cat.jpg").resize((384, 256))
    pixels, _ = Preprocessing(224, "crop").prepare(picture)
    assert np.array_equal(pixels, np.asarray(picture.crop((80, 16, 304, 240))))


@pytest.mark.parametrize("fit", ["squash", "crop"])
def test_shortcuts_for_large_pictures_change_little(fit, tmp_path):
    large = open_picture(EXAMPLES / "raccoon.jpg").resize((2400, 1800), Image.Resampling.LANCZOS)
    large.save(tmp_path / "large.jpg", quality=95)
    preprocessing = Preprocessing(224, fit)
    quick, window = preprocessing.load(tmp_path / "large.jpg")
    opened = open_picture(tmp_path / "large.jpg")
    box = [window[0] * 2400, window[1] * 1800, window[2] * 2400, window[3] * 1800]
    exact = np.asarray(opened.resize((224, 224), Image.Resampling.BICUBIC, box=box))
    difference = np.abs(quick.astype(int) - exact)
    assert difference.mean() < 1
    assert np.percentile(difference, 99) <= 5


def test_pixels_are_writable_bytes_of_the_asked_size():
    pixels, _ = Preprocessing(96).prepare(Image.new("RGB", (10, 700), "red"))
    assert pixels.shape == (96, 96, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.writeable
    assert (pixels == [255, 0, 0]).all()


def test_it_survives_json_and_pickle():
    original = Preprocessing(260, "crop", "BGR", (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    assert Preprocessing.from_json(original.to_json()) == original
    assert pickle.loads(pickle.dumps(original)) == original


def test_workers_that_only_read_pictures_do_not_import_torch():
    code = "import sys, sightline.encoders.preprocessing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
