"""Explanations by gradients: gradient x input, Grad-CAM, guided backpropagation, both together.

Gradients are the true ones, through the attention, too. (The original code of paper 4 writes them
by hand and keeps attention and gates constant.)
"""

import torch
from torch import Tensor

from sightline.explain.lrp import word_relevance
from sightline.explain.painting import paint
from sightline.explain.pulling import Pulled, pull_regions, pull_words
from sightline.explain.relevance import Guided, Tracing
from sightline.explain.subject import Evidence, Subject


def gradient_input(subject: Subject) -> Evidence:
    """Gradient x input of pixels, regions and word vectors (Simonyan et al. 2013)."""
    pulled = pull_words(subject, Tracing())
    pixels = None
    if subject.x is not None:
        pixels = (pull_regions(subject, pulled.regions, Tracing()) * subject.x).sum(2)
    return Evidence(
        pulled.total.T,
        (pulled.regions * subject.regions.vectors).sum(-1).transpose(0, 1),
        word_relevance(pulled.words),
        None if pixels is None else pixels.transpose(0, 1),
    )


def grad_cam(subject: Subject) -> Evidence:
    """Grad-CAM over the regions (Selvaraju et al. 2017; paper 4, section 3.3).

    A channel weighs as much as its mean gradient. Evidence against a word is kept: clamped at zero
    it is the published method. For words, the summed gradient of their vectors.
    """
    pulled = pull_words(subject, Tracing())
    return Evidence(pulled.total.T, _cam(subject, pulled), _word_gradients(pulled))


def guided_backpropagation(subject: Subject) -> Evidence:
    """The gradient of the pixels, rectified on its way back (Springenberg et al. 2015).

    Rectifiers of the encoder are guided, as in paper 4; regions and words have their gradients.
    """
    pulled = pull_words(subject, Tracing())
    return Evidence(
        pulled.total.T,
        pulled.regions.sum(-1).transpose(0, 1),
        _word_gradients(pulled),
        _guided_pixels(subject, pulled),
    )


def guided_grad_cam(subject: Subject) -> Evidence:
    """Guided backpropagation where Grad-CAM is positive, and as much as it is."""
    pulled = pull_words(subject, Tracing())
    cam = _cam(subject, pulled).clamp(min=0)
    pixels = _guided_pixels(subject, pulled)
    if pixels is not None:
        assert subject.encoder is not None
        # Each cell of the grid over its own square of the encoder's input.
        height, width = pixels.shape[-2:]
        grid = torch.unflatten(cam, 2, subject.encoder.grid)
        pixels = pixels * paint(grid, None, (height, width))
    return Evidence(
        pulled.total.T,
        cam * pulled.regions.sum(-1).transpose(0, 1),
        _word_gradients(pulled),
        pixels,
    )


def _cam(subject: Subject, pulled: Pulled) -> Tensor:
    there = subject.regions.mask[..., None]
    weights = (pulled.regions * there).sum(2) / there.sum(1)  # (N, B, D)
    vectors = subject.regions.vectors * there
    return (weights.transpose(0, 1) @ vectors.transpose(1, 2)).detach()


def _word_gradients(pulled: Pulled) -> Tensor:
    return word_relevance([(vectors.new_ones(()), c) for vectors, c in pulled.words])


def _guided_pixels(subject: Subject, pulled: Pulled) -> Tensor | None:
    if subject.x is None:
        return None
    return pull_regions(subject, pulled.regions, Guided()).sum(2).transpose(0, 1)
