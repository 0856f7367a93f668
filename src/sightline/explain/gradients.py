"""Explanations by gradients: gradient x input, Grad-CAM, guided backpropagation, both together.

Gradients are the true ones, through the attention, too. (The original code of paper 4 writes them
by hand and keeps attention and gates constant.)
"""

import torch
from torch import Tensor

from sightline.explain.attribution import Attribution
from sightline.explain.backward import (
    Multipliers,
    backward_to_pixels,
    backward_to_regions,
    word_relevance,
)
from sightline.explain.gradient_mode import GradientMode, GuidedMode
from sightline.explain.targets import Targets
from sightline.explain.upsampling import upsample


def gradient_input(targets: Targets) -> Attribution:
    """Gradient x input of pixels, regions and word vectors (Simonyan et al. 2013)."""
    multipliers = backward_to_regions(targets, GradientMode())
    pixels = None
    if targets.x is not None:
        pixels = (backward_to_pixels(targets, multipliers.regions, GradientMode()) * targets.x).sum(
            2
        )
    return Attribution(
        multipliers.total.T,
        (multipliers.regions * targets.regions.vectors).sum(-1).transpose(0, 1),
        word_relevance(multipliers),
        None if pixels is None else pixels.transpose(0, 1),
    )


def grad_cam(targets: Targets) -> Attribution:
    """Grad-CAM over the regions (Selvaraju et al. 2017; paper 4, section 3.3).

    A channel weighs as much as its mean gradient. What speaks against a word is kept: clamped at
    zero it is the published method. For words, the summed gradient of their vectors.
    """
    multipliers = backward_to_regions(targets, GradientMode())
    return Attribution(
        multipliers.total.T, _cam(targets, multipliers), _word_gradients(multipliers)
    )


def guided_backpropagation(targets: Targets) -> Attribution:
    """The gradient of the pixels, rectified on its way back (Springenberg et al. 2015).

    Rectifiers of the encoder are guided, as in paper 4; regions and words have their gradients.
    """
    multipliers = backward_to_regions(targets, GradientMode())
    return Attribution(
        multipliers.total.T,
        multipliers.regions.sum(-1).transpose(0, 1),
        _word_gradients(multipliers),
        _guided_pixels(targets, multipliers),
    )


def guided_grad_cam(targets: Targets) -> Attribution:
    """GuidedMode backpropagation where Grad-CAM is positive, and as much as it is."""
    multipliers = backward_to_regions(targets, GradientMode())
    cam = _cam(targets, multipliers).clamp(min=0)
    pixels = _guided_pixels(targets, multipliers)
    if pixels is not None:
        assert targets.encoder is not None
        # Each cell of the grid over its own square of the encoder's input.
        height, width = pixels.shape[-2:]
        grid = torch.unflatten(cam, 2, targets.encoder.grid)
        pixels = pixels * upsample(grid, None, (height, width))
    return Attribution(
        multipliers.total.T,
        cam * multipliers.regions.sum(-1).transpose(0, 1),
        _word_gradients(multipliers),
        pixels,
    )


def _cam(targets: Targets, multipliers: Multipliers) -> Tensor:
    visible = targets.regions.mask[..., None]
    weights = (multipliers.regions * visible).sum(2) / visible.sum(1)  # (N, B, D)
    vectors = targets.regions.vectors * visible
    return (weights.transpose(0, 1) @ vectors.transpose(1, 2)).detach()


def _word_gradients(multipliers: Multipliers) -> Tensor:
    return word_relevance(multipliers, by_vectors=False)


def _guided_pixels(targets: Targets, multipliers: Multipliers) -> Tensor | None:
    if targets.x is None:
        return None
    return backward_to_pixels(targets, multipliers.regions, GuidedMode()).sum(2).transpose(0, 1)
