"""Hiding parts of a picture, against hiding them by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sightline
from sightline.evaluation.perturbation import FRACTIONS, Perturbation, blur, hidden_parts
from sightline.regions import Regions


@pytest.fixture(scope="module")
def perturbation(checkpoint, examples):
    captioner = sightline.load(checkpoint)
    picture = captioner.encode(examples / "cat.jpg")
    picture = replace(picture, window=torch.tensor([[0.0, 0.0, 1.0, 1.0]]))  # of all it shows
    return Perturbation(captioner, picture, captioner.vocabulary.encode("the red cat sits"))


def probability(perturbation, vectors, place):
    given = perturbation.picture.regions
    regions = Regions(vectors, given.mask, given.boxes)
    with torch.no_grad():
        logits = perturbation.captioner.model(regions, perturbation.tokens).logits
    return logits[0, 0, place].softmax(-1)[perturbation.ids[place]].item()


def test_hidden_regions_are_replaced_by_their_mean(perturbation):
    relevance = np.arange(16.0)
    curves = perturbation.regions(2, [relevance, -relevance])
    assert np.shape(curves) == (2, 4, len(FRACTIONS))
    vectors = perturbation.picture.regions.vectors
    hidden = vectors.clone()
    hidden[:, 13:] = vectors.mean(1, keepdim=True)  # 20 % of 16: three
    fall = probability(perturbation, vectors, 2) - probability(perturbation, hidden, 2)
    most_by_mean, least_by_mean = 1, 3
    assert curves[0][most_by_mean][1] == pytest.approx(fall, abs=1e-6)
    assert curves[1][least_by_mean][1] == pytest.approx(fall, abs=1e-6)
    assert abs(fall) > 1e-4


def test_hidden_pixels_are_encoded_anew(perturbation):
    captioner = perturbation.captioner
    x = captioner.encoder.normalise(perturbation.picture.pixels)
    from_the_top = -np.arange(64.0 * 64).reshape(64, 64)
    curves = perturbation.pixels(1, [from_the_top])
    changed = x.flatten(2).clone()
    changed[..., : round(0.2 * 64 * 64)] = x.mean((2, 3), keepdim=False)[..., None]
    changed = changed.view_as(x)
    with torch.no_grad():
        vectors = captioner.encoder.features(changed).flatten(2).transpose(1, 2)
    whole = probability(perturbation, perturbation.picture.regions.vectors, 1)
    assert curves[0][1][1] == pytest.approx(whole - probability(perturbation, vectors, 1), abs=1e-4)


def test_ties_are_broken_at_random_but_alike():
    hidden = hidden_parts(np.zeros(1000))
    assert hidden.sum(-1).tolist() == [[100, 200, 400, 700]] * 2
    first_half = hidden[0, 1, :500].sum()
    assert 60 < first_half < 140
    assert (hidden == hidden_parts(np.ones(1000))).all()
    assert not (hidden[0, 0] & hidden[1, 0]).any()


def test_a_blur_is_a_mean_of_neighbours():
    x = torch.zeros(1, 3, 33, 33)
    x[..., 16, 16] = 1
    blurred = blur(x, 2.0)
    torch.testing.assert_close(blurred.sum((2, 3)), torch.ones(1, 3))
    expected = np.exp(-0.5 * (1 / 2) ** 2)
    assert (blurred[0, 0, 16, 17] / blurred[0, 0, 16, 16]).item() == pytest.approx(expected)
