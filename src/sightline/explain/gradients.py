"""Explanations by gradients: gradient x input, Grad-CAM, guided backpropagation, both together.

Gradients are the true ones, through the attention, too. (The original code of paper 4 writes them
by hand and keeps attention and gates constant.)
"""

from typing import TypeVar

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
from sightline.explain.upsampling import interpolate

Maps = TypeVar("Maps", Tensor, Tensor | None)


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

    A channel weighs as much as its mean gradient. Of a captioner with an encoder of its own (a
    Transformer), regions are taken after the last norm of it: before a norm, a region and its
    gradient are at right angles, for the norm undoes whatever would make the region larger. What
    speaks against a word is kept: clamped at zero it is the published method. Between the centres
    of regions it is interpolated, as published. For words, the summed gradient of their vectors.
    """
    multipliers = backward_to_regions(targets, GradientMode())
    cam = _cam(targets, multipliers)
    return Attribution(
        multipliers.total.T, cam, _word_gradients(multipliers), _interpolate(targets, cam)
    )


def guided_backpropagation(targets: Targets, signed: bool = False) -> Attribution:
    """The gradient of the pixels, rectified on its way back (Springenberg et al. 2015).

    Rectifiers of the encoder are guided, as in paper 4; regions and words have their gradients.
    Unless `signed`, only the size is kept: a pixel below zero would raise the score by being
    darker, which is no evidence against the word.
    """
    multipliers = backward_to_regions(targets, GradientMode())
    return Attribution(
        multipliers.total.T,
        _size(multipliers.regions.sum(-1).transpose(0, 1), signed),
        _word_gradients(multipliers),
        _size(_guided_pixels(targets, multipliers), signed),
    )


def guided_grad_cam(targets: Targets, signed: bool = False) -> Attribution:
    """Guided backpropagation where Grad-CAM is positive, and as much as it is.

    `signed` is as for `guided_backpropagation`: of this method's positive part 61.4 % lay inside
    the boxes of what words name, of its negative part 62.2 %.
    """
    multipliers = backward_to_regions(targets, GradientMode())
    cam = _cam(targets, multipliers).clamp(min=0)
    pixels = _guided_pixels(targets, multipliers)
    weights = _interpolate(targets, cam)
    if pixels is not None and weights is not None:
        pixels = pixels * weights
    return Attribution(
        multipliers.total.T,
        _size(cam * multipliers.regions.sum(-1).transpose(0, 1), signed),
        _word_gradients(multipliers),
        _size(pixels, signed),
    )


def _size(numbers: Maps, signed: bool) -> Maps:
    return numbers if signed or numbers is None else numbers.abs()


def _cam(targets: Targets, multipliers: Multipliers) -> Tensor:
    vectors, gradients = multipliers.normalised or (targets.regions.vectors, multipliers.regions)
    visible = targets.regions.mask[..., None]
    weights = (gradients * visible).sum(2) / visible.sum(1)  # (N, B, D)
    return (weights.transpose(0, 1) @ (vectors * visible).transpose(1, 2)).detach()


def _interpolate(targets: Targets, cam: Tensor) -> Tensor | None:
    """A map of regions `(B, N, L)` over the encoder's input `(B, N, h, w)`, without steps."""
    if targets.x is None:
        return None
    assert targets.encoder is not None
    size = (targets.x.shape[2], targets.x.shape[3])
    return interpolate(targets.encoder.on_grid(cam), size)


def _word_gradients(multipliers: Multipliers) -> Tensor:
    return word_relevance(multipliers, by_vectors=False)


def _guided_pixels(targets: Targets, multipliers: Multipliers) -> Tensor | None:
    if targets.x is None:
        return None
    return backward_to_pixels(targets, multipliers.regions, GuidedMode()).sum(2).transpose(0, 1)
