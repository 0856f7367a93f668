"""Log-probabilities of sampled words, and their gradient, without storing the distributions."""

import pytest
import torch
from torch.nn import functional

from sightline.decoding.constraints import Constraints
from sightline.text.vocabulary import END, PAD, START, UNKNOWN
from sightline.training.objectives import policy
from sightline.training.objectives.policy import policy_log_probs

WORDS = 9
CAPTIONS = torch.tensor([[[5, 4, 6, END], [5, END, PAD, PAD]], [[8, 7, END, PAD], [4, 4, 4, END]]])


def by_definition(logits, limits, temperature):
    impossible = torch.zeros(logits.shape[2:], dtype=torch.bool)
    impossible[:, [PAD, START, UNKNOWN]] = True
    impossible[: limits.min_length, END] = True
    possible = (logits / temperature).masked_fill(impossible, float("-inf"))
    log_probs = functional.log_softmax(possible, -1).gather(3, CAPTIONS[..., None]).squeeze(3)
    free = CAPTIONS != PAD
    free[..., limits.max_length :] = False
    return log_probs.masked_fill(~free, 0.0)


@pytest.mark.parametrize("at_a_time", [1, 2 * WORDS, 1 << 19])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("limits", [Constraints(max_length=3), Constraints(20, min_length=1)])
def test_values_and_gradient_are_those_of_the_definition(
    limits, temperature, at_a_time, monkeypatch
):
    monkeypatch.setattr(policy, "_AT_A_TIME", at_a_time)
    torch.manual_seed(0)
    logits = torch.randn(2, 2, 4, WORDS, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 2, 4, dtype=torch.float64)
    ours = policy_log_probs(logits, CAPTIONS, limits, temperature)
    theirs = by_definition(logits, limits, temperature)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, logits, weights), torch.autograd.grad(theirs, logits, weights)
    )


def test_logits_of_16_bits_are_added_up_in_32():
    torch.manual_seed(0)
    logits = torch.randn(2, 2, 4, WORDS).bfloat16().requires_grad_()
    ours = policy_log_probs(logits, CAPTIONS, Constraints())
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, by_definition(logits.float(), Constraints(), 1.0))
    (gradient,) = torch.autograd.grad(ours.sum(), logits)
    assert gradient.dtype == torch.bfloat16


def test_of_nothing_but_padding_there_is_nothing_to_learn():
    logits = torch.randn(1, 1, 2, WORDS, requires_grad=True)
    log_probs = policy_log_probs(logits, torch.full((1, 1, 2), PAD), Constraints())
    assert log_probs.tolist() == [[[0.0, 0.0]]]
    log_probs.sum().backward()
    assert not logits.grad.any()
