"""A captioner that says captions in the middle of being trained."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import nn

from sightline.models.interface import CaptionModel


def unwrap(model: nn.Module) -> CaptionModel:
    """The captioner inside what distributes it over processes."""
    while not isinstance(model, CaptionModel):
        model = cast(nn.Module, model.module)
    return model


@contextmanager
def inference(model: nn.Module) -> Iterator[CaptionModel]:
    """The captioner inside what distributes it, without dropout or gradient for a while."""
    captioner = unwrap(model)
    was_training = captioner.training
    captioner.eval()
    try:
        with torch.no_grad():
            yield captioner
    finally:
        captioner.train(was_training)
