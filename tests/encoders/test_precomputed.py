"""Bottom-up-attention features in both of their formats."""

import base64

import numpy as np
import pytest
import torch

from sightline.encoders.precomputed import PrecomputedRegions, TsvRegions, collate, read_npz
from sightline.errors import DataError

RANDOM = np.random.default_rng(1)
PIXELS = np.array([[0, 0, 320, 240], [64, 120, 640, 480]], np.float32)
FRACTIONS = [[0, 0, 0.5, 0.5], [0.1, 0.25, 1, 1]]


def vectors(n=2, width=2048):
    return RANDOM.normal(size=(n, width)).astype(np.float32)


@pytest.mark.parametrize("feature_key", ["x", "features", "feat"])
@pytest.mark.parametrize("box_key", ["bbox", "boxes"])
def test_npz_with_boxes_in_pixels(feature_key, box_key, tmp_path):
    path, features = tmp_path / "42.npz", vectors()
    arrays = {feature_key: features, box_key: PIXELS, "image_w": 640, "image_h": np.array([480])}
    np.savez(path, **arrays)
    regions = read_npz(path)
    assert torch.equal(regions.vectors, torch.from_numpy(features))
    assert torch.allclose(regions.boxes, torch.tensor(FRACTIONS))


def test_npz_with_boxes_as_fractions_in_half_precision(tmp_path):
    path = tmp_path / "42.npz"
    np.savez(path, features=vectors().astype(np.float16), boxes=np.array(FRACTIONS))
    regions = read_npz(path)
    assert regions.vectors.dtype == torch.float32
    assert torch.allclose(regions.boxes, torch.tensor(FRACTIONS))


def test_npz_that_stores_features_by_column(tmp_path):
    path, features = tmp_path / "42.npz", vectors()
    np.savez(path, x=features.T, bbox=np.array(FRACTIONS))
    assert torch.equal(read_npz(path).vectors, torch.from_numpy(features))


def test_pickled_extras_stay_unread(tmp_path):
    path = tmp_path / "42.npz"
    np.savez(path, x=vectors(), bbox=np.array(FRACTIONS), info=np.array({"a": 1}, dtype=object))
    assert read_npz(path).vectors.shape == (2, 2048)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"bbox": PIXELS}, "none of features, x, feat"),
        ({"x": vectors()}, "none of boxes, bbox"),
        ({"x": vectors(3), "bbox": np.array(FRACTIONS)}, r"expected \(3, 4\)"),
        ({"x": vectors()[0], "bbox": np.array(FRACTIONS)}, r"expected \(n, D\)"),
        ({"x": vectors(0), "bbox": np.zeros((0, 4))}, r"expected \(n, D\)"),
        ({"x": vectors(), "bbox": PIXELS}, "beyond the picture"),
        ({"x": vectors(), "bbox": PIXELS, "image_w": [1, 2], "image_h": 1}, "one number each"),
        ({"x": np.array([{}, {}]), "bbox": np.array(FRACTIONS)}, "plain arrays"),
    ],
)
def test_npz_that_does_not_hold_regions(arrays, says, tmp_path):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=says) as caught:
        read_npz(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"words", b"PK\x03\x04 cut short"])
def test_npz_that_is_none(content, tmp_path):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.npz"):
        read_npz(tmp_path / "bad.npz")


def test_npz_that_is_missing(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_npz(tmp_path / "none.npz")


def tsv_row(image_id, features, boxes=None):
    boxes = PIXELS[: len(features)] if boxes is None else boxes
    coded = [base64.b64encode(array.tobytes()).decode() for array in (boxes, features)]
    return "\t".join([str(image_id), "640", "480", str(len(features)), *coded]) + "\n"


def test_tsv_gives_any_picture_in_any_order(tmp_path):
    path, one, two = tmp_path / "trainval.tsv", vectors(1), vectors(2)
    path.write_text(tsv_row(150367, one) + tsv_row(9, two))
    regions = TsvRegions(path)
    assert len(regions) == 2
    assert list(regions) == ["150367", "9"]
    assert "9" in regions
    assert torch.equal(regions["9"].vectors, torch.from_numpy(two))
    assert torch.allclose(regions["9"].boxes, torch.tensor(FRACTIONS))
    assert torch.equal(regions["150367"].vectors, torch.from_numpy(one))


def test_tsv_may_have_a_header_and_empty_lines(tmp_path):
    path = tmp_path / "trainval.tsv"
    header = "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures\n"
    path.write_text(header + tsv_row(1, vectors()) + "\n")
    assert list(TsvRegions(path)) == ["1"]


def test_tsv_that_changed_after_it_was_opened(tmp_path):
    path = tmp_path / "trainval.tsv"
    path.write_text(tsv_row(1, vectors()) + tsv_row(2, vectors()))
    regions = TsvRegions(path)
    path.write_text(tsv_row(1, vectors(1)) + tsv_row(2, vectors()))
    with pytest.raises(DataError, match="has changed"):
        regions["2"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("7\t640\t480\t2\n", "4 columns instead of"),
        ("7\t640\t480\t2\t!!!!\t????\n", "damaged"),
        (tsv_row(7, vectors(), PIXELS[:1]), "damaged"),
        (tsv_row(7, vectors(), PIXELS * 9), "beyond the picture"),
    ],
)
def test_tsv_with_a_bad_row_names_the_picture(row, says, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text(row + tsv_row(8, vectors()))
    regions = TsvRegions(path)
    with pytest.raises(DataError, match=says) as caught:
        regions["7"]
    assert "picture '7'" in str(caught.value)
    assert regions["8"].vectors.shape == (2, 2048)


def test_tsv_that_lacks_a_picture_or_the_file(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text(tsv_row(8, vectors()))
    with pytest.raises(DataError, match="no picture '9'"):
        TsvRegions(path)["9"]
    with pytest.raises(DataError, match="is not a file"):
        TsvRegions(tmp_path / "none.tsv")


def test_a_batch_is_padded_and_masked():
    short = PrecomputedRegions(torch.ones(1, 8), torch.full((1, 4), 0.5))
    long = PrecomputedRegions(torch.full((3, 8), 2.0), torch.full((3, 4), 0.25))
    regions = collate([short, long])
    assert regions.vectors.shape == (2, 3, 8)
    assert regions.mask.tolist() == [[True, False, False], [True, True, True]]
    assert regions.vectors[0, 1:].abs().sum() == 0
    assert regions.boxes[1].unique().tolist() == [0.25]


def test_features_of_two_detectors_do_not_mix():
    pictures = [PrecomputedRegions(torch.ones(1, w), torch.zeros(1, 4)) for w in (8, 9)]
    with pytest.raises(DataError, match=r"different widths \[8, 9\]"):
        collate(pictures)
