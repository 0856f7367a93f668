"""A captioner with shuffled weights: other weights, the same encoder, nothing else touched."""

import numpy as np
import pytest
import torch

import sightline
from sightline.evaluation.shuffled_weights import rank_correlation, shuffle_weights


def test_weights_are_shuffled_within_each_tensor_of_a_copy(checkpoint):
    captioner = sightline.load(checkpoint)
    before = {name: p.clone() for name, p in captioner.model.named_parameters()}
    shuffled = shuffle_weights(captioner)
    assert shuffled.encoder is captioner.encoder
    for name, parameter in shuffled.model.named_parameters():
        torch.testing.assert_close(captioner.model.get_parameter(name), before[name])
        torch.testing.assert_close(parameter.flatten().sort()[0], before[name].flatten().sort()[0])
    changed = [
        not torch.equal(parameter, before[name])
        for name, parameter in shuffled.model.named_parameters()
        if before[name].unique().numel() > 1
    ]
    assert all(changed)


def test_rank_correlation_is_spearmans():
    one, other = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 1000.0, 30.0, 2000.0])
    assert rank_correlation(one, other) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert rank_correlation(one, -one) == pytest.approx(-1)
    tied = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert tied == pytest.approx(3**0.5 / 2)
