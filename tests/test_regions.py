"""Boxes of a grid's cells tile the window that the encoder saw."""

import torch

from sightline.regions import Regions, grid_boxes


def test_cells_tile_the_window_row_by_row():
    window = torch.tensor([[0.25, 0.1, 0.75, 0.9]])
    boxes = grid_boxes(4, 5, window)
    assert boxes.shape == (1, 20, 4)
    assert torch.allclose(boxes[0, 0, :2], window[0, :2])
    assert torch.allclose(boxes[0, -1, 2:], window[0, 2:])
    areas = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    assert torch.allclose(areas, torch.full((1, 20), 0.5 * 0.8 / 20))
    assert torch.allclose(boxes[0, 1:5, 0], boxes[0, :4, 2])  # right edge meets next left edge
    assert torch.allclose(boxes[0, 5:, 1], boxes[0, :-5, 3])  # lower edge meets next upper edge


def test_each_picture_has_its_own_window():
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]])
    boxes = grid_boxes(1, 1, windows)
    assert boxes[:, 0].tolist() == windows.tolist()


def test_rows_of_a_batch():
    regions = Regions(
        torch.arange(6.0).view(3, 2, 1), torch.ones(3, 2).bool(), torch.zeros(3, 2, 4)
    )
    assert len(regions) == 3
    assert regions[1:].vectors.flatten().tolist() == [2, 3, 4, 5]
    assert regions[torch.tensor([2, 0])].vectors[:, 0, 0].tolist() == [4, 0]
