"""The terms of the loss, against their definitions."""

import pytest
import torch
from torch.nn import functional

from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.text.vocabulary import PAD
from sightline.training.objectives.cross_entropy import (
    CrossEntropy,
    CrossEntropyOptions,
    doubly_stochastic_penalty,
)
from sightline.training.objectives.registry import create_objective
from tiny_batch import make_batch

SIZES = {"region_width": 6, "word_width": 6, "state_width": 8, "attention_width": 6, "dropout": 0.0}


def make_model(name: str = "soft_attention", **options: float) -> CaptionModel:
    torch.manual_seed(0)
    return create_model(name, 12, 5, {**SIZES, **options})


def test_counts_leave_padding_out() -> None:
    batch = make_batch()
    assert (float(batch.tokens), float(batch.captions)) == (7, 3)


def test_likelihood_and_smoothing_equal_torchs_cross_entropy() -> None:
    model, batch, smoothing = make_model(), make_batch(), 0.3
    options = CrossEntropyOptions(label_smoothing=smoothing)
    terms = CrossEntropy(options).terms(model, batch, 0)
    loss = sum(term.weight * term.total.item() for term in terms.values())
    logits = model(batch.regions, batch.inputs).logits
    reference = functional.cross_entropy(
        logits.flatten(0, 2),
        batch.targets.flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )
    plain = functional.cross_entropy(
        logits.flatten(0, 2), batch.targets.flatten(), ignore_index=PAD, reduction="sum"
    )
    assert loss == pytest.approx(reference.item(), rel=1e-5)
    assert terms["nll"].total.item() == pytest.approx(plain.item(), rel=1e-5)


def test_the_penalty_is_summed_over_places_and_words_that_are_there() -> None:
    model, batch = make_model(), make_batch()
    unrolled = model(batch.regions, batch.inputs)
    penalty = doubly_stochastic_penalty(unrolled, batch)
    for b in range(2):
        for k in range(2):
            words = int((batch.targets[b, k] != PAD).sum())
            places = int(batch.regions.mask[b].sum())
            expected = 0.0
            for i in range(places if words else 0):
                looked = sum(float(unrolled.attention[b, k, t, i]) for t in range(words))
                expected += (1 - looked) ** 2
            assert float(penalty[b, k]) == pytest.approx(expected, abs=1e-5)


def test_a_stand_in_batch_weighs_nothing() -> None:
    options = {"name": "cross_entropy", "label_smoothing": 0.1, "doubly_stochastic": 1.0}
    batch = make_batch(weight=0.0)
    terms = create_objective(options).terms(make_model(), batch, 0)
    assert all(float(term.total) == 0 for term in terms.values())
    assert float(batch.tokens) == float(batch.captions) == 0


def test_scheduled_sampling_feeds_the_models_own_words() -> None:
    model, batch = make_model(), make_batch()
    objective = CrossEntropy(CrossEntropyOptions(scheduled_sampling=1.0, sampling_epochs=2))
    guesses = model(batch.regions, batch.inputs).logits.argmax(-1)
    assert torch.equal(objective._inputs(model, batch, 0), batch.inputs)  # not in the first epoch
    inputs = objective._inputs(model, batch, 2)
    there = batch.targets[..., :-1] != PAD
    assert torch.equal(inputs[..., 1:][there], guesses[..., :-1][there])
    assert torch.equal(inputs[..., 0], batch.inputs[..., 0])
    torch.manual_seed(0)
    half = [objective._inputs(model, batch, 1) for _ in range(200)]
    changed = torch.stack([(h != batch.inputs)[..., 1:][there].float().mean() for h in half]).mean()
    differ = (guesses[..., :-1] != batch.inputs[..., 1:])[there].float().mean()
    assert float(changed) == pytest.approx(0.5 * float(differ), abs=0.08)


class TestVariational:
    def test_the_first_batch_sets_the_baseline_and_later_ones_move_it(self) -> None:
        objective = create_objective({"name": "reinforce"})
        objective.observe({"log_likelihood": -20.0})
        assert objective.state() == {"baseline": pytest.approx(-20.0)}
        objective.observe({"log_likelihood": -10.0})
        assert objective.state()["baseline"] == pytest.approx(0.9 * -20 + 0.1 * -10)

    def test_the_surrogate_is_the_printed_estimator(self) -> None:
        model = make_model("hard_attention", half_sampling=0.0).train()
        batch = make_batch()
        objective = create_objective({"name": "reinforce"})
        objective.load_state({"baseline": -3.0})
        torch.manual_seed(5)
        terms = objective.terms(model, batch, 0)
        torch.manual_seed(5)
        unrolled = model(batch.regions, batch.inputs)
        expected = 0.0
        for b in range(2):
            for k in range(2):
                words = int((batch.targets[b, k] != PAD).sum())
                log_p = torch.log_softmax(unrolled.logits[b, k], -1)
                reward = sum(float(log_p[t, batch.targets[b, k, t]]) for t in range(words))
                places = float(unrolled.signals["log_location"][b, k, :words].sum())
                expected -= (reward + 3.0) * places if words else 0.0
        assert float(terms["reinforce"].total) == pytest.approx(expected, rel=1e-4)
        assert terms["reinforce"].weight == 0.01

    def test_label_smoothing_is_that_of_cross_entropy_and_no_part_of_the_reward(self) -> None:
        model = make_model("hard_attention", half_sampling=1.0).eval()  # the expectation
        batch = make_batch()
        plain, smooth, soft = (
            create_objective(options).terms(model, batch, 0)
            for options in (
                {"name": "reinforce"},
                {"name": "reinforce", "label_smoothing": 0.1},
                {"name": "cross_entropy", "label_smoothing": 0.1},
            )
        )
        assert "smoothing" not in plain
        assert smooth["smoothing"].weight == soft["smoothing"].weight == 0.1
        assert torch.equal(smooth["smoothing"].total, soft["smoothing"].total)
        assert float(smooth["smoothing"].total) != 0
        for name, term in plain.items():
            assert torch.equal(term.total, smooth[name].total)

    def test_its_state_survives_a_checkpoint(self) -> None:
        objective = create_objective({"name": "reinforce"})
        assert objective.state() == {}
        objective.observe({"log_likelihood": -7.0})
        again = create_objective({"name": "reinforce"})
        again.load_state(objective.state())
        assert again.state() == objective.state()
