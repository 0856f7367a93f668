"""Idefics sees a large picture in crops, and once more as a whole."""

import numpy as np
import pytest
import torch
from PIL import Image

import sightline
from sightline.adapters.families import FAMILIES
from sightline.adapters.tiny import SIDE, tiny
from sightline.adapters.wrap import see_into


@pytest.fixture(scope="module")
def parts():
    return tiny("idefics3")


@pytest.fixture(scope="module")
def encoder(parts):
    return see_into(*parts)[0]


def smooth_picture():
    """A picture without fine detail, of which any filter makes the same small one."""
    corners = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [90, 90, 90]]], np.uint8)
    return Image.fromarray(corners).resize((2 * SIDE, 2 * SIDE), Image.Resampling.BICUBIC)


def test_pixels_are_those_of_its_own_processor(parts, encoder):
    model, processor = parts
    picture = smooth_picture()
    theirs = processor(images=picture, text="<image>", return_tensors="pt")["pixel_values"]
    pixels, _ = encoder.preprocessing.prepare(picture)
    x = encoder.normalise(torch.from_numpy(pixels)[None])
    ours = FAMILIES["idefics3"].pixels(model, x)["pixel_values"]
    assert ours.shape == theirs.shape == (1, 5, 3, SIDE, SIDE)
    assert torch.allclose(ours[:, :4], theirs[:, :4], atol=1e-5)
    assert torch.allclose(ours[:, 4], theirs[:, 4], atol=0.05)  # made small by another filter


def test_every_token_has_the_box_that_it_sees(encoder):
    assert (encoder.crops, encoder.grid) == (2, (4, 4))
    boxes = encoder.boxes(torch.tensor([[0.0, 0.0, 1.0, 1.0]]))[0]
    assert boxes.shape == (20, 4)
    assert boxes[1].tolist() == [0.25, 0.0, 0.5, 0.25]  # the first crop's second
    assert boxes[4].tolist() == [0.5, 0.0, 0.75, 0.25]  # the first of the crop at its right
    assert boxes[8].tolist() == [0.0, 0.5, 0.25, 0.75]  # the first of the crop below
    assert boxes[17].tolist() == [0.5, 0.0, 1.0, 0.5]  # the second of the whole picture


def test_only_the_crop_that_changed_and_the_whole_see_a_change(encoder):
    x = torch.rand(1, 3, 2 * SIDE, 2 * SIDE)
    changed = x.clone()
    changed[:, :, SIDE:, :SIDE] = 0.3  # the third crop
    with torch.no_grad():
        differs = (encoder.vectors(x) != encoder.vectors(changed)).any(2)[0].tolist()
    assert differs == [*[False] * 8, *[True] * 4, *[False] * 4, *[True] * 4]


def test_numbers_of_crops_and_of_the_whole_meet_on_the_grid(encoder):
    numbers = torch.zeros(20)
    numbers[4], numbers[17] = 1.0, 4.0
    expected = torch.zeros(4, 4)
    expected[0, 2] = 1.0
    expected[:2, 2:] += 1.0
    assert encoder.on_grid(numbers).tolist() == expected.tolist()
    x = torch.rand(1, 3, 2 * SIDE, 2 * SIDE)
    with torch.no_grad():
        assert encoder.features(x)[0, :, 0, 2].equal(encoder.vectors(x)[0, 4])


def test_a_smaller_square_has_fewer_crops(parts):
    captioner = sightline.wrap(*parts, size=SIDE)
    encoder = captioner.encoder
    assert (encoder.crops, encoder.preprocessing.size) == (1, SIDE)
    assert int((captioner.model.starts[0] == parts[0].config.image_token_id).sum()) == 4
    assert captioner.caption(smooth_picture(), max_length=3).text


@pytest.mark.parametrize("method", ["grad_cam", "contrastive_lrp", "occlusion"])
def test_maps_go_on_to_the_pixels(parts, method):
    captioner = sightline.wrap(*parts)
    (dog,) = captioner.explain(smooth_picture(), "a dog", words=["dog"], method=method, pixels=True)
    assert len(dog.regions) == 20
    assert dog.heatmap.shape == (2 * SIDE, 2 * SIDE)
    finer = len(np.unique(dog.heatmap)) > 4 * 20
    assert finer == (method != "occlusion")  # which hides regions
