"""Attention as an explanation: where a word looked, whether or not it affected the word."""

from typing import Literal, get_args

import torch
from torch import Tensor

from sightline.errors import ConfigError
from sightline.explain.attribution import Attribution
from sightline.explain.targets import Targets

Weights = Literal["reported", "raw", "aligned", "rollout"]


@torch.no_grad()
def attention(
    targets: Targets,
    weights: Weights = "reported",
    layer: int | None = None,
    head: int | None = None,
) -> Attribution:
    """The attention of each word over the regions; it says nothing of the words before.

    `reported` is what the captioner reports, heads averaged. Of a Transformer there is more: `raw`
    or `aligned` weights (paper 0) of a `layer` and a `head`, or the mean of those not named; and
    `rollout`, which follows raw attention down the layers, each keeping half of what it was given
    (Abnar and Zuidema 2020, for attention over the picture alone).
    """
    if weights not in get_args(Weights):
        known = ", ".join(get_args(Weights))
        raise ConfigError(f"attention: weights must be one of {known}, not '{weights}'")
    model, tokens = targets.model, targets.tokens
    memory = model.encode(targets.regions)
    unrolled = model.unroll(tokens, memory)
    if weights == "reported":
        if layer is not None or head is not None:
            raise ConfigError("attention: a layer or head needs weights 'raw' or 'aligned'")
        attention = unrolled.attention[:, 0]
    else:
        maps = model.attention_maps(tokens, memory)
        if maps is None:
            raise ConfigError(f"attention: only a Transformer has '{weights}' weights")
        attention = _reduce(
            (maps.used if weights == "aligned" else maps.raw)[:, 0], weights, layer, head
        )
    at_places = targets.places[..., None].expand(-1, -1, attention.shape[-1])
    total = targets.chosen(unrolled.logits)
    words = total.new_zeros(*total.shape, tokens.shape[2])
    return Attribution(total, attention.gather(1, at_places), words)


def _reduce(maps: Tensor, weights: Weights, layer: int | None, head: int | None) -> Tensor:
    """One map `(B, T, L)` of those of all layers and heads `(B, T, layers, heads, L)`."""
    for name, number, count in (("layer", layer, maps.shape[2]), ("head", head, maps.shape[3])):
        if number is not None and not -count <= number < count:
            raise ConfigError(f"attention: there is no {name} {number}; the model has {count}")
    if weights == "rollout":
        if layer is not None or head is not None:
            raise ConfigError(
                "attention: rollout combines all layers and heads; leave out layer and head"
            )
        flow = torch.zeros_like(maps[:, :, 0, 0])
        for layer_map in maps.mean(3).unbind(2):
            flow = (flow + layer_map) / 2
        return flow / flow.sum(-1, keepdim=True)
    maps = maps.mean(2) if layer is None else maps[:, :, layer]
    return maps.mean(2) if head is None else maps[:, :, head]
