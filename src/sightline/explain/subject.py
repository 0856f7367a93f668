"""What is to be explained, and what every method finds: the tensors behind an explanation."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from sightline.encoders.encoder import Encoder
from sightline.encoders.regions import Regions
from sightline.models.interface import CaptionModel


@dataclass(frozen=True, eq=False)
class Subject:
    """Words at places of given captions, one caption for each of B pictures, N words in each.

    `tokens` begins with the start word; place t asks for the word after `tokens[:, :, t]`, which
    may be any word, said there or not. With `encoder` and its input `x`, explanations go on to the
    pixels.

    Word n of all pictures is explained in one pass: a batch of N gradients, not of N pictures.
    """

    model: CaptionModel
    regions: Regions
    tokens: Tensor  # (B, 1, T)
    places: Tensor  # (B, N)
    words: Tensor  # (B, N)
    encoder: Encoder | None = None
    x: Tensor | None = None  # (B, 3, h, w), as `Encoder.normalise` gives it

    def chosen(self, logits: Tensor) -> Tensor:
        """The logits `(B, N)` of the words asked for, of `(B, 1, T, V)`."""
        pictures = torch.arange(len(logits), device=logits.device)[:, None]
        return logits[pictures, 0, self.places, self.words]


class Evidence(NamedTuple):
    """What speaks for (or, below zero, against) each of the N words asked for."""

    total: Tensor  # (B, N): the logit that is explained
    regions: Tensor  # (B, N, L)
    words: Tensor  # (B, N, T): of each given word, the start word first; 0 from the place on
    pixels: Tensor | None = None  # (B, N, h, w), of the encoder's input
    bias: Tensor | None = None  # (B, N): what constants absorbed
    epsilon: Tensor | None = None  # (B, N): what ε absorbed
    encoder: Tensor | None = None  # (B, N): what the encoder absorbed of the regions' relevance
