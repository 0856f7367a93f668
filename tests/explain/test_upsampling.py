"""Maps at the size of the picture keep their sums, and stay where they were."""

import pytest
import torch

from sightline.explain.upsampling import upsample, upsample_boxes


@pytest.mark.parametrize("size", [(7, 9), (2, 3), (50, 31), (1, 1)])
def test_sums_are_kept_at_every_size(size):
    torch.manual_seed(0)
    maps, window = torch.randn(3, 5, 4).double(), torch.tensor([0.25, 0.1, 0.75, 0.9]).double()
    for where in (None, window):
        painted = upsample(maps, where, size)
        assert painted.shape == (3, *size)
        torch.testing.assert_close(painted.sum((1, 2)), maps.sum((1, 2)))
    weights, corner = torch.randn(3, 6).double(), torch.rand(6, 2).double() / 2
    boxes = torch.cat([corner, corner + 0.1 + torch.rand(6, 2).double() * 0.4], 1)
    painted = upsample_boxes(weights, boxes, size)
    torch.testing.assert_close(painted.sum((1, 2)), weights.sum(1))


def test_relevance_stays_where_it_was():
    window = torch.tensor([0.5, 0.0, 1.0, 0.5])
    painted = upsample(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), window, (4, 4))
    assert painted.nonzero().tolist() == [[0, 2], [1, 3]]
    painted = upsample_boxes(torch.tensor([[1.0]]), torch.tensor([[0.0, 0.5, 0.5, 1.0]]), (2, 4))
    assert painted.tolist() == [[[0, 0, 0, 0], [0.5, 0.5, 0, 0]]]
