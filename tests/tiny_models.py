"""A tiny captioner of every registered kind, in double precision."""

import pytest
import torch

from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model, list_models

VOCABULARY, REGION_DIM = 11, 6

# Options that make each captioner tiny; a model with variants has several.
RECURRENT = {"region_width": 5, "word_width": 4, "state_width": 7, "attention_width": 3}
ATTENTIVE = {"width": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 12}
HIERARCHICAL = {
    "region_width": 5,
    "word_width": 4,
    "worker_width": 7,
    "manager_width": 6,
    "goal_width": 3,
    "attention_width": 3,
    "discriminator_width": 4,
}
TINY = {
    "soft_attention": [RECURRENT, {**RECURRENT, "region_width": 0}],
    "hard_attention": [RECURRENT, {**RECURRENT, "look": "argmax"}],
    "adaptive_attention": [{"word_width": 4, "state_width": 7, "attention_width": 3}],
    "grid_td": [{"word_width": 4, "state_width": 7, "attention_width": 3}],
    "transformer": [
        ATTENTIVE,
        {**ATTENTIVE, "norm": "pre", "region_position": "none", "attention_layer": -1},
        {**ATTENTIVE, "encoder_layers": 0, "tie_words": True},
    ],
    "aligned_transformer": [
        {**ATTENTIVE, "alignment": {"fusion": "max"}},
        {**ATTENTIVE, "alignment": {"fusion": "average", "average": "head_mean"}, "norm": "pre"},
        {**ATTENTIVE, "alignment": {"fusion": "decay"}},
        {**ATTENTIVE, "alignment": {"fusion": "gate"}},
        {**ATTENTIVE, "alignment": {"fusion": "gate", "mask": "linear", "regions": 5}},
    ],
    "hierarchical": [HIERARCHICAL, {**HIERARCHICAL, "discriminator_sees_picture": True}],
    "spatial_transformer": [ATTENTIVE, {**ATTENTIVE, "alignment": {"fusion": "gate"}}],
}
CASES = [(name, i) for name in list_models() for i in range(len(TINY.get(name, [{}])))]


def create(name: str, variant: int, seed: int = 0) -> CaptionModel:
    if name not in TINY:
        pytest.fail(f"'{name}' is registered; give it tiny options in {__file__}")
    torch.manual_seed(seed)
    model = create_model(name, VOCABULARY, REGION_DIM, TINY[name][variant]).double().eval()
    with torch.no_grad():  # far enough from nothing that every part tells
        for parameter in model.parameters():
            parameter.mul_(2)
    return model
