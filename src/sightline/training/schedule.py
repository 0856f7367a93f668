"""Optimisers and learning rates. A rate is a plain function of the step, so it needs no state."""

import math
from typing import Any

import torch
from torch import nn

from sightline.recipe import OptimizerRecipe, ScheduleRecipe


def create_optimizer(
    captioner: nn.Module,
    recipe: OptimizerRecipe,
    trainable: nn.Module | None = None,
    rate: float = 0.0,
) -> torch.optim.Optimizer:
    """Adam, AdamW or RMSProp.

    A group of parameters has its `full_rate`, which `learning_rate_factor` scales. The `trainable`
    stages of an encoder have a `rate` of their own, and no decay, which would pull them from what
    they have learnt.
    """
    groups = [_group(captioner, recipe.learning_rate, recipe.weight_decay)]
    if trainable is not None:
        groups.append(_group(trainable, rate, 0.0))
    match recipe.name:
        case "adam" | "adamw":
            adam = torch.optim.Adam if recipe.name == "adam" else torch.optim.AdamW
            # One pass over the weights. On a CPU, torch's default makes nine.
            on_cpu = next(captioner.parameters()).device.type == "cpu"
            betas = recipe.betas[0], recipe.betas[1]
            optimizer = adam(groups, betas=betas, fused=on_cpu or None)
            optimizer.register_step_post_hook(_note_change)
            return optimizer
        case "rmsprop":
            return torch.optim.RMSprop(groups, alpha=recipe.decay)


def _note_change(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Raise the versions of the weights, which the fused step leaves as they were.

    By them, what was made from a weight (an encoder's laid-out kernels) is known to be out of date.
    """
    for group in optimizer.param_groups:
        torch.autograd.graph.increment_version(group["params"])


def _group(module: nn.Module, rate: float, decay: float) -> dict[str, Any]:
    options = {"lr": rate, "full_rate": rate, "weight_decay": decay}
    return {"params": list(module.parameters()), **options}


def learning_rate_factor(recipe: ScheduleRecipe, step: int, steps: int) -> float:
    """The share of the learning rate that holds at a step (from 0) of a run of `steps`.

    `plateau` is constant here; the loop multiplies its cuts in.

    >>> [learning_rate_factor(ScheduleRecipe("noam", warmup=4), step, 100) for step in (0, 3, 15)]
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
