"""A tiny captioner of every registered kind, in double precision."""

import torch

from sightline.explain.methods import list_methods
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS, create_model

VOCABULARY, REGION_DIM = 11, 6

CASES = [(name, i) for name, entry in MODELS.builtin.items() for i in range(len(entry.tiny))]


FOR_EVERY_CAPTIONER = [name for name in list_methods() if name != "gradient_rollout"]
"""Explanation methods, but for that of attention layers alone."""


def create(name: str, variant: int, seed: int = 0) -> CaptionModel:
    torch.manual_seed(seed)
    model = (
        create_model(name, VOCABULARY, REGION_DIM, MODELS.builtin[name].tiny[variant])
        .double()
        .eval()
    )
    with torch.no_grad():  # far enough from nothing that every part tells
        for parameter in model.parameters():
            parameter.mul_(2)
    return model
