"""Regions: the vectors that an encoder computes for a picture, and the box of each."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)  # not frozen: Lightning moves the tensors of a batch in place
class Regions:
    """A batch of pictures as sets of region vectors.

    A cell of a grid and a detected object are both regions: a vector and a box. Boxes are
    `(x0, y0, x1, y1)` as fractions of the upright picture's width and height, so they hold
    for every size in which it is shown.
    """

    vectors: Tensor  # (B, L, D)
    mask: Tensor  # (B, L) bool, True where there is a region
    boxes: Tensor  # (B, L, 4)

    def __len__(self) -> int:
        return len(self.vectors)

    def to(self, device: torch.device | str) -> "Regions":
        """The same regions on another device."""
        return Regions(self.vectors.to(device), self.mask.to(device), self.boxes.to(device))

    def __getitem__(self, rows: slice | Tensor | list[int]) -> "Regions":
        """Some pictures of the batch."""
        return Regions(self.vectors[rows], self.mask[rows], self.boxes[rows])


def join(parts: Sequence[Regions]) -> Regions:
    """Several batches as one; where numbers of regions differ, the mask tells them apart.

    >>> one, two = (Regions(torch.ones(1, n, 5), torch.ones(1, n) > 0, torch.zeros(1, n, 4))
    ...             for n in (1, 2))
    >>> join([one, two]).mask.tolist()
    [[True, False], [True, True]]
    """
    most = max(part.mask.shape[1] for part in parts)

    def padded(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat(
            [
                t
                if t.shape[1] == most
                else torch.cat([t, t.new_zeros(len(t), most - t.shape[1], *t.shape[2:])], 1)
                for t in tensors
            ]
        )

    return Regions(
        padded([part.vectors for part in parts]),
        padded([part.mask for part in parts]),
        padded([part.boxes for part in parts]),
    )


def grid_boxes(height: int, width: int, windows: Tensor) -> Tensor:
    """Boxes `(B, height * width, 4)` of a grid's cells, row by row.

    `windows` `(B, 4)` is the part of each picture that the encoder saw, in picture fractions:
    `(0, 0, 1, 1)` for a picture squashed whole into the input, less for a cropped one.

    >>> grid_boxes(1, 2, torch.tensor([[0.0, 0.0, 1.0, 1.0]])).tolist()
    [[[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]]
    """
    row, column = torch.meshgrid(
        torch.arange(height, device=windows.device),
        torch.arange(width, device=windows.device),
        indexing="ij",
    )
    corners = torch.stack(
        [column / width, row / height, (column + 1) / width, (row + 1) / height], dim=-1
    ).reshape(1, -1, 4)
    low, high = windows[:, None, :2], windows[:, None, 2:]
    return torch.cat([low, low], -1) + corners * torch.cat([high - low, high - low], -1)
