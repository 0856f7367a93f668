"""What every explanation method gives: the tensors behind an `Explanation`."""

from typing import NamedTuple

from torch import Tensor


class Attribution(NamedTuple):
    """What speaks for (or, below zero, against) each of the N target words."""

    total: Tensor  # (B, N): the logit that is explained
    regions: Tensor  # (B, N, L)
    words: Tensor  # (B, N, T): of each given word, the start word first; 0 from the place on
    pixels: Tensor | None = None  # (B, N, h, w), of the encoder's input
    bias: Tensor | None = None  # (B, N): what constants absorbed
    epsilon: Tensor | None = None  # (B, N): what ε absorbed
    encoder: Tensor | None = None  # (B, N): what the encoder absorbed of the regions' relevance
