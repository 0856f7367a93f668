import itertools
from dataclasses import replace

import pytest
import torch

from sightline.errors import ConfigError
from sightline.models.hard_attention import HardAttention, HardAttentionConfig
from sightline.regions import Regions
from sightline.text.vocabulary import END, START

LOCATIONS = 3
CAPTION = (4, 5, END)
CONFIG = HardAttentionConfig(
    region_width=0,
    word_width=3,
    state_width=3,
    attention_width=3,
    dropout=0.0,
    half_sampling=0.0,
)


class Led(HardAttention):
    """Looks where it is told: `path` `(K, T)` holds the locations of every row."""

    path: torch.Tensor
    time: int

    def encode(self, regions):
        self.time = 0
        return super().encode(regions)

    def _look(self, energy):
        place = self.path[None, :, self.time, None]
        self.time += 1
        log_attention = energy.log_softmax(-1)
        weights = torch.zeros_like(energy).scatter(-1, place, 1.0)
        log_location = log_attention.gather(-1, place).squeeze(-1)
        return log_attention.exp(), weights, {"log_location": log_location}


def create(kind=HardAttention, config=CONFIG):
    torch.manual_seed(3)
    model = kind(6, 4, config).double()
    with torch.no_grad():  # where it looks matters
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model


@pytest.fixture
def regions():
    torch.manual_seed(4)
    mask = torch.ones(1, LOCATIONS, dtype=torch.bool)
    return Regions(torch.randn(1, LOCATIONS, 4).double(), mask, torch.zeros(1, LOCATIONS, 4))


def log_likelihoods(model, regions, rows):
    """log p(y | s, a) and log p(s | a) of each row."""
    given = torch.tensor((START, *CAPTION[:-1])).expand(1, rows, -1)
    said = torch.tensor(CAPTION).expand(1, rows, -1)
    unrolled = model(regions, given)
    log_words = unrolled.logits.log_softmax(-1).gather(-1, said[..., None]).squeeze(-1)
    return log_words.sum(-1).flatten(), unrolled.signals["log_location"].sum(-1).flatten()


def gradient(model, value):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(model.parameters()))])


def exact_gradient(regions):
    """Of the lower bound L_s = sum_s p(s | a) log p(y | s, a), over all paths of looking."""
    model = create(Led)
    model.path = torch.tensor(list(itertools.product(range(LOCATIONS), repeat=len(CAPTION))))
    log_words, log_path = log_likelihoods(model, regions, len(model.path))
    assert log_path.exp().sum().item() == pytest.approx(1)
    return gradient(model, (log_path.exp() * log_words).sum())


def estimates(regions, *, signal=1.0, baseline=True, batches=250, rows=64):
    """Gradient estimates of paper 1, section 4.1 (λ_r = `signal`, λ_e = 0), one per batch."""
    model = create().train()
    torch.manual_seed(5)
    gradients, b = [], None
    for _ in range(batches):
        log_words, log_path = log_likelihoods(model, regions, rows)
        mean = log_words.detach().mean()
        advantage = log_words.detach() - (b if baseline and b is not None else 0.0)
        surrogate = log_words + signal * advantage * log_path
        gradients.append(gradient(model, surrogate.mean()))
        b = mean if b is None else 0.9 * b + 0.1 * mean
    return torch.stack(gradients)


def z_scores(samples, exact):
    return (samples.mean(0) - exact) / (samples.std(0) / len(samples) ** 0.5 + 1e-12)


@pytest.mark.parametrize("baseline", [False, True])
def test_the_estimators_mean_is_the_gradient_of_the_lower_bound(regions, baseline):
    exact = exact_gradient(regions)
    z = z_scores(estimates(regions, baseline=baseline), exact)
    moving = exact.abs() > 1e-9  # words that are not in the caption and such have none
    assert z[moving].abs().max() < 4.5
    assert z[moving].square().mean() < 2
    assert (z[~moving].abs() < 1e-3).all()


@pytest.mark.parametrize("signal", [0.0, 0.5])
def test_another_estimator_would_be_told_apart(regions, signal):
    z = z_scores(estimates(regions, signal=signal, batches=100), exact_gradient(regions))
    assert z.abs().max() > 10


def test_the_baseline_lowers_the_variance(regions):
    without = estimates(regions, baseline=False).var(0).sum()
    with_baseline = estimates(regions, baseline=True)[20:].var(0).sum()
    assert with_baseline < 0.5 * without


def test_a_sample_looks_at_one_place_and_sends_no_gradient_through_it():
    model = create().train()
    energy = torch.tensor([[[0.0, 1.0, -1.0]]]).double().repeat(1, 4000, 1).requires_grad_()
    attention, weights, signals = model._look(energy)
    assert not weights.requires_grad
    assert (weights.sum(-1) == 1).all()
    assert ((weights == 0) | (weights == 1)).all()
    torch.testing.assert_close(weights.mean(1), attention[:, 0].detach(), rtol=0, atol=0.03)
    torch.testing.assert_close(
        signals["log_location"].exp(), (attention * weights).sum(-1), rtol=0, atol=1e-12
    )


def test_an_expectation_is_soft_attention_and_carries_no_location(regions):
    model = create(config=replace(CONFIG, half_sampling=1.0)).train()
    memory = model.encode(regions)
    step = model.step(torch.tensor([[START]]), model.start(memory), memory)
    assert (step.signals["log_location"] == 0).all()
    energy = torch.randn(1, 1, LOCATIONS).double().requires_grad_()
    attention, weights, _ = model._look(energy)
    assert torch.equal(attention, weights)
    assert weights.requires_grad


@pytest.mark.parametrize(("probability", "batches"), [(0.0, 0), (1.0, 200), (0.3, 60)])
def test_half_sampling_takes_the_expectation_for_whole_batches(regions, probability, batches):
    model = create(config=replace(CONFIG, half_sampling=probability)).train()
    expected = 0
    for _ in range(200):
        model.encode(regions)
        _, weights, _ = model._look(torch.zeros(2, 3, LOCATIONS))
        is_soft = (weights < 1).all(-1)
        assert is_soft.all() or not is_soft.any()
        expected += bool(is_soft.all())
    assert abs(expected - batches) <= 25 * (0 < probability < 1)


def test_captioning_may_look_at_the_likeliest_place_or_a_sample():
    energy = torch.tensor([0.0, 2.0, 1.0]).repeat(1, 500, 1)
    for look, places in (("argmax", {1}), ("sample", {0, 1, 2})):
        model = create(config=replace(CONFIG, look=look)).eval()
        attention, weights, _ = model._look(energy)
        assert set(weights.argmax(-1).flatten().tolist()) == places
        torch.testing.assert_close(attention, energy.softmax(-1))


def test_entropy_counts_only_regions_that_are_there():
    energy = torch.tensor([[[0.3, 0.3, float("-inf"), 0.3]]], requires_grad=True)
    _, _, signals = create()._look(energy)
    assert signals["entropy"].item() == pytest.approx(torch.tensor(3.0).log().item())
    signals["entropy"].sum().backward()
    assert energy.grad.isfinite().all()


def test_half_sampling_is_a_probability():
    with pytest.raises(ConfigError, match=r"^model: half_sampling must be a probability, not 1.5$"):
        replace(CONFIG, half_sampling=1.5)
