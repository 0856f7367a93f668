import pytest
import torch

from sightline.models.layers import barrier
from sightline.models.sentinel import AdaptiveModule, SentinelLSTM

WIDTH, ATTENTION, REGIONS = 3, 4, 5


@pytest.fixture
def module(tell):
    return tell(AdaptiveModule(WIDTH, ATTENTION))


def remember(module, regions, mask=None):
    """A memory of pictures with these regions."""
    mask = torch.ones(regions.shape[:2], dtype=torch.bool) if mask is None else mask
    return {"regions": regions, "keys": module.key(regions), "barrier": barrier(mask, regions)}


def silence(module):
    """Every region and the sentinel get the energy zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    return module


def random(*shape):
    torch.manual_seed(3)
    return torch.randn(*shape).double()


def test_the_sentinel_is_equation_1(tell, by_hand):
    cell = tell(SentinelLSTM(WIDTH))
    entering, state = random(2, 2, 5 * WIDTH), random(2, 2, 2, WIDTH)
    hidden, memory, sentinel = cell(entering, state[0], state[1])
    for b in range(2):
        for k in range(2):
            sums = by_hand.plus(
                entering[b, k].tolist(),
                by_hand.times(cell.from_hidden.weight.tolist(), state[0, b, k].tolist()),
                cell.from_hidden.bias.tolist(),
            )
            expected = by_hand.top_down(sums, state[1, b, k].tolist())
            for computed, by_equation in zip((hidden, memory, sentinel), expected, strict=True):
                assert computed[b, k].tolist() == pytest.approx(by_equation)


def test_the_adaptive_module_is_equations_2_to_7(module, by_hand):
    regions, hidden, sentinel = (
        random(2, REGIONS, WIDTH),
        random(2, 3, WIDTH),
        random(2, 3, WIDTH).flip(1),
    )
    mask = torch.tensor([[True] * 5, [True, False, True, False, True]])
    context, attention, beta = module(hidden, sentinel, remember(module, regions, mask))
    for b in range(2):
        there = regions[b][mask[b]].tolist()
        for k in range(3):
            expected = by_hand.attend(module, there, hidden[b, k].tolist(), sentinel[b, k].tolist())
            assert context[b, k].tolist() == pytest.approx(expected[0])
            assert attention[b, k][mask[b]].tolist() == pytest.approx(expected[1])
            assert beta[b, k].item() == pytest.approx(expected[2])
    assert (attention[1][:, ~mask[1]] == 0).all()


@pytest.mark.parametrize("present", [1, 3, 5])
def test_among_equals_the_sentinel_is_one_more_region(module, present):
    """β is a share of one softmax over the regions that are there and the sentinel."""
    silence(module)
    regions, sentinel = random(1, REGIONS, WIDTH), random(1, 1, WIDTH)
    mask = (torch.arange(REGIONS) < present)[None]
    context, attention, beta = module(
        random(1, 1, WIDTH), sentinel, remember(module, regions, mask)
    )
    assert beta.item() == pytest.approx(1 / (present + 1))
    assert attention[0, 0].tolist() == pytest.approx([1 / present] * present + [0] * (5 - present))
    everything = torch.cat([regions[0, :present], sentinel[0]])
    torch.testing.assert_close(context[0, 0], everything.mean(0))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sentinel_that_wins_replaces_the_picture_and_one_that_loses_is_not_seen(module, sign):
    silence(module)
    with torch.no_grad():
        module.sentinel_key.weight.fill_(sign * 100.0)
        module.score.fill_(100.0)
    regions, sentinel = random(1, REGIONS, WIDTH), random(1, 2, WIDTH).abs() + 0.1
    context, _, beta = module(random(1, 2, WIDTH), sentinel, remember(module, regions))
    torch.testing.assert_close(beta, torch.full((1, 2), sign == 1).double())
    expected = sentinel if sign == 1 else regions.mean(1, keepdim=True).expand(1, 2, -1)
    torch.testing.assert_close(context, expected)


def test_beta_lies_strictly_between_nothing_and_all(module):
    regions = random(4, REGIONS, WIDTH)
    _, attention, beta = module(
        random(4, 50, WIDTH), random(50, 4, WIDTH).transpose(0, 1), remember(module, regions)
    )
    assert ((beta > 0) & (beta < 1)).all()
    assert beta.std() > 0.05
    torch.testing.assert_close(attention.sum(-1), torch.ones(4, 50).double())
