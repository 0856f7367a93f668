"""Relevance of pixels and regions at the resolution of a picture, with every sum kept."""

import torch
from torch import Tensor
from torch.nn import functional


def upsample(maps: Tensor, window: Tensor | None, size: tuple[int, int]) -> Tensor:
    """Maps `(..., h, w)` over a `window` `(4,)` of the picture, as maps `(..., H, W)` of it all.

    A cell's relevance is spread evenly over the pixels it covers, or pixels are added up. Outside
    the window there is none. The window is `(x0, y0, x1, y1)` in fractions of the picture; None is
    the whole.

    >>> upsample(torch.tensor([[1.0, 4.0]]), None, (2, 4)).tolist()
    [[0.25, 0.25, 1.0, 1.0], [0.25, 0.25, 1.0, 1.0]]
    """
    x0, y0, x1, y1 = (0.0, 0.0, 1.0, 1.0) if window is None else window.tolist()
    down = _shares(*_edges(y0, y1, maps.shape[-2], maps), size[0])
    across = _shares(*_edges(x0, x1, maps.shape[-1], maps), size[1])
    return down.T @ maps @ across


def upsample_boxes(weights: Tensor, boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Weights `(N, L)` of boxes `(L, 4)` as maps `(N, H, W)`: each spread over its box.

    >>> box = torch.tensor([[0.0, 0.0, 0.75, 1.0]])
    >>> upsample_boxes(torch.tensor([[3.0]]), box, (1, 4)).tolist()
    [[[1.0, 1.0, 1.0, 0.0]]]
    """
    boxes = boxes.to(weights.dtype)
    across = _shares(boxes[:, 0], boxes[:, 2], size[1])
    down = _shares(boxes[:, 1], boxes[:, 3], size[0])
    return torch.einsum("nl,lh,lw->nhw", weights, down, across)


def average_boxes(maps: Tensor, boxes: Tensor) -> Tensor:
    """The mean `(N, L)` of maps `(N, H, W)` over each of some boxes `(L, 4)`.

    >>> box = torch.tensor([[0.0, 0.0, 0.75, 1.0]])
    >>> average_boxes(torch.tensor([[[1.0, 2.0, 3.0, 9.0]]]), box).tolist()
    [[2.0]]
    """
    boxes = boxes.to(maps.dtype)
    across = _shares(boxes[:, 0], boxes[:, 2], maps.shape[2])
    down = _shares(boxes[:, 1], boxes[:, 3], maps.shape[1])
    return torch.einsum("nhw,lh,lw->nl", maps, down, across)


def interpolate(grid: Tensor, size: tuple[int, int]) -> Tensor:
    """Maps `(B, N, h, w)` at `size`, bilinear between the centres of cells; a mean stays one.

    A constant map keeps its sum, as a relevance should; others do nearly, since cells at the border
    reach farther.

    >>> interpolate(torch.tensor([[[[0.0, 4.0]]]]), (1, 4)).flatten().tolist()
    [0.0, 0.5, 1.5, 2.0]
    """
    cells = grid.shape[-2] * grid.shape[-1]
    smooth = functional.interpolate(grid, size, mode="bilinear", align_corners=False)
    return smooth * (cells / (size[0] * size[1]))


def _edges(low: float, high: float, cells: int, like: Tensor) -> tuple[Tensor, Tensor]:
    edges = torch.linspace(low, high, cells + 1, dtype=like.dtype, device=like.device)
    return edges[:-1], edges[1:]


def _shares(low: Tensor, high: Tensor, length: int) -> Tensor:
    """The share of each interval `(n,)` of 0 to 1 that lies in each of `length` pixels."""
    edges = torch.arange(length + 1, dtype=low.dtype, device=low.device) / length
    covered = torch.minimum(edges[1:], high[:, None]) - torch.maximum(edges[:-1], low[:, None])
    return covered.clamp(min=0) / (high - low).clamp(min=1e-9)[:, None]
