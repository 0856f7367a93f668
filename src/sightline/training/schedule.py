"""Optimisers and learning rates. A rate is a plain function of the step, so it needs no state."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from sightline.training.recipe import OptimizerRecipe, ScheduleRecipe


def create_optimizer(
    parameters: Iterable[nn.Parameter], recipe: OptimizerRecipe
) -> torch.optim.Optimizer:
    """Adam, AdamW or RMSProp."""
    rate, decay = recipe.learning_rate, recipe.weight_decay
    match recipe.name:
        case "adam":
            betas = (recipe.betas[0], recipe.betas[1])
            return torch.optim.Adam(parameters, rate, betas, weight_decay=decay)
        case "adamw":
            betas = (recipe.betas[0], recipe.betas[1])
            return torch.optim.AdamW(parameters, rate, betas, weight_decay=decay)
        case "rmsprop":
            return torch.optim.RMSprop(parameters, rate, recipe.decay, weight_decay=decay)


def rate_share(recipe: ScheduleRecipe, step: int, steps: int) -> float:
    """The share of the learning rate that holds at a step (from 0) of a run of `steps`.

    `plateau` is constant here; the loop multiplies its cuts in.

    >>> [rate_share(ScheduleRecipe("noam", warmup=4), step, 100) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    """
    warming = min((step + 1) / max(recipe.warmup, 1), 1.0)
    match recipe.name:
        case "constant" | "plateau":
            return warming
        case "noam":  # Vaswani et al. 2017, section 5.3, scaled to peak at 1
            return min(warming, math.sqrt(max(recipe.warmup, 1) / (step + 1)))
        case "cosine":
            left = (step - recipe.warmup) / max(steps - recipe.warmup, 1)
            wave = 0.5 * (1 + math.cos(math.pi * min(max(left, 0.0), 1.0)))
            return warming * (recipe.minimum + (1 - recipe.minimum) * wave)
