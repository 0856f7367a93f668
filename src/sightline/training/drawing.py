"""Captions of the model's own, drawn in the middle of training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import SampleOptions, sample
from sightline.models.interface import CaptionModel, Memory


@contextmanager
def captioning(model: nn.Module) -> Iterator[CaptionModel]:
    """The captioner inside what distributes it over processes, without dropout or gradient."""
    while not isinstance(model, CaptionModel):
        model = cast(nn.Module, model.module)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was_training)


def draw(captioner: CaptionModel, memory: Memory, count: int, limits: Constraints) -> Tensor:
    """Captions `(B, count, T)` from the captioner's distribution.

    The seed comes from torch's global generator, whose state a checkpoint keeps.
    """
    seed = int(torch.randint(2**31, ()))
    return sample(captioner, memory, SampleOptions(count, seed=seed, constraints=limits)).tokens
