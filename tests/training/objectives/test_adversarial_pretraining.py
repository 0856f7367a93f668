"""Maximum likelihood with the discriminator alongside: its terms, who learns from what."""

import math
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor
from torch.nn import functional

from sightline.models.hierarchical import Hierarchical, HierarchicalConfig, goal_collapse, goals_of
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, START, UNKNOWN
from sightline.training.batch import CaptionBatch
from sightline.training.objectives import adversarial_pretraining as discriminated
from sightline.training.objectives.adversarial_pretraining import judged_rows, sample_fakes
from sightline.training.objectives.registry import create_objective
from tiny_runs import gradients_of_one_and_two

SIZES = {
    "region_width": 6,
    "word_width": 6,
    "worker_width": 8,
    "manager_width": 5,
    "attention_width": 6,
    "discriminator_width": 7,
}
OPTIONS = {"label_smoothing": 0.1, "doubly_stochastic": 0.5}


def make_model(dropout: float = 0.0, sees_picture: bool = False) -> Hierarchical:
    torch.manual_seed(0)
    config = HierarchicalConfig(**SIZES, dropout=dropout, discriminator_sees_picture=sees_picture)
    return Hierarchical(12, 5, config).train()


def make_batch(weight: float = 1.0) -> CaptionBatch:
    """Five captions of two pictures; one was cut, one holds an unknown word."""
    torch.manual_seed(1)
    first = [[5, 6, END, PAD], [7, UNKNOWN, END, PAD], [8, 9, 10, 11]]
    second = [[8, END, PAD, PAD], [9, 9, 4, END], [PAD, PAD, PAD, PAD]]
    targets = torch.tensor([first, second])
    inputs = functional.pad(targets[..., :-1], (1, 0), value=START)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    regions = Regions(torch.randn(2, 3, 5), mask, torch.zeros(2, 3, 4))
    return CaptionBatch(regions, inputs, targets, weight)


FAKES = torch.tensor([[[4, END, PAD]], [[10, 11, END]]])


@pytest.fixture
def fixed_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discriminated, "sample_fakes", lambda captioner, batch: FAKES)


# What is judged: neither what was cut, nor what holds an unknown word, nor what is absent.
JUDGED = [(0, 0), (1, 0), (1, 1)]


@pytest.mark.usefixtures("fixed_fakes")
@pytest.mark.parametrize("sees_picture", [False, True])
def test_the_terms_are_those_of_cross_entropy_and_of_the_verdicts(sees_picture: bool) -> None:
    model, batch = make_model(sees_picture=sees_picture), make_batch()
    terms = create_objective({"name": "adversarial_pretraining", **OPTIONS}).terms(model, batch, 0)
    plain = create_objective({"name": "cross_entropy", **OPTIONS}).terms(model, batch, 0)
    assert list(terms) == [*plain, "discriminator", "accuracy", "collapse"]
    for name, term in plain.items():
        assert terms[name].total.item() == pytest.approx(term.total.item(), rel=1e-5)
        assert (terms[name].weight, terms[name].per) == (term.weight, term.per)

    pictures = model.encode(batch.regions).get("picture")

    def verdict(caption: Tensor, b: int) -> float:
        words = [START, *(word for word in caption.tolist() if word != PAD)]
        picture = None if pictures is None else pictures[[b]]
        return model.discriminator(torch.tensor([[words]]), picture).sigmoid().item()

    loss, right = 0.0, 0
    for b, k in JUDGED:
        real, fake = verdict(batch.targets[b, k], b), verdict(FAKES[b, 0], b)
        loss -= math.log(real) + (0.5 if sees_picture else 1.0) * math.log(1 - fake)
        loss -= 0.5 * sees_picture * math.log(1 - verdict(batch.targets[b, k], 1 - b))
        right += (real > 0.5) + (fake < 0.5)
    assert terms["discriminator"].total.item() == pytest.approx(loss, rel=1e-5)
    assert terms["discriminator"].weight == 1
    accuracy = terms["accuracy"].total / batch.captions
    assert accuracy.item() == pytest.approx(right / (2 * len(JUDGED)))

    goals = goals_of(model(batch.regions, batch.inputs).signals)
    collapse = goal_collapse(goals, batch.targets != PAD).sum()
    assert terms["collapse"].total.item() == pytest.approx(collapse.item(), rel=1e-5)
    assert {terms[name].weight for name in ("accuracy", "collapse")} == {0}


def gradients(model: Hierarchical, value: Tensor) -> set[str]:
    named = dict(model.named_parameters())
    found = torch.autograd.grad(value, list(named.values()), retain_graph=True, allow_unused=True)
    return {name for name, g in zip(named, found, strict=True) if g is not None and g.any()}


@pytest.mark.usefixtures("fixed_fakes")
def test_the_discriminators_loss_trains_it_and_nothing_else() -> None:
    model = make_model()
    terms = create_objective({"name": "adversarial_pretraining", **OPTIONS}).terms(
        model, make_batch(), 0
    )
    names = {name for name, _ in model.named_parameters()}
    judge = {name for name in names if name.startswith("discriminator.")}
    assert gradients(model, terms["discriminator"].total) == judge
    assert gradients(model, terms["nll"].total) == names - judge
    assert gradients(model, terms["attention"].total) & judge == set()


@pytest.mark.usefixtures("fixed_fakes")
def test_a_stand_in_batch_weighs_nothing() -> None:
    objective = create_objective({"name": "adversarial_pretraining", **OPTIONS})
    terms = objective.terms(make_model(), make_batch(weight=0.0), 0)
    assert all(term.total.item() == 0 for term in terms.values())


def test_a_picture_alone_in_its_batch_has_no_other_to_be_mistaken_for() -> None:
    batch = make_batch()
    regions = Regions(
        *(part[:1] for part in (batch.regions.vectors, batch.regions.mask, batch.regions.boxes))
    )
    alone = CaptionBatch(regions, batch.inputs[:1], batch.targets[:1])
    rows = judged_rows(make_model(sees_picture=True), alone, FAKES[:1])
    assert rows.shape[:2] == (1, 4)


def test_nothing_to_judge_is_no_loss() -> None:
    batch = make_batch()
    cut = CaptionBatch(
        batch.regions, batch.inputs, torch.where(batch.targets == END, 9, batch.targets)
    )
    terms = create_objective({"name": "adversarial_pretraining"}).terms(make_model(), cut, 0)
    assert terms["discriminator"].total.item() == terms["accuracy"].total.item() == 0


def test_captions_are_sampled_from_the_model_as_it_captions() -> None:
    model, batch = make_model(dropout=0.9), make_batch()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    torch.manual_seed(4)
    fakes = sample_fakes(model, batch)
    assert model.training
    assert not fakes.is_inference()
    assert fakes.shape[:2] == (2, 1)
    assert fakes.shape[2] <= batch.targets.shape[2]
    torch.manual_seed(4)
    assert torch.equal(sample_fakes(model, batch), fakes)  # by torch's own generator,
    assert any(  # which moves on
        not torch.equal(sample_fakes(model, batch), fakes) for _ in range(5)
    )
    torch.manual_seed(4)
    assert torch.equal(sample_fakes(model.eval(), batch), fakes)  # without dropout
    assert not model.training


@pytest.mark.parametrize("sees_picture", [False, True])
def test_what_is_judged_are_real_captions_a_made_up_one_and_those_of_another_picture(
    sees_picture: bool,
) -> None:
    real = make_batch().targets
    rows = judged_rows(make_model(sees_picture=sees_picture), make_batch(), FAKES)
    assert rows.shape == (2, 7 if sees_picture else 4, 5)
    assert (rows[..., 0] == START).all()
    assert torch.equal(rows[:, :3, 1:], real)
    assert torch.equal(rows[:, 3, 1:4], FAKES[:, 0])
    assert (rows[:, 3, 4] == PAD).all()
    if sees_picture:
        assert torch.equal(rows[:, 4:, 1:], real[[1, 0]])


# --- in the loop --------------------------------------------------------------------------------


@pytest.fixture
def recipe(tiny_recipe: Path) -> Path:
    values = yaml.safe_load(tiny_recipe.read_text())
    values["model"] = {"name": "hierarchical", **SIZES, "dropout": 0.2}
    values["objective"] = {"name": "adversarial_pretraining", **OPTIONS}
    values["epochs"] = 2
    tiny_recipe.write_text(yaml.safe_dump(values))
    return tiny_recipe


# Sampling differs between processes on purpose; here every picture has the same fakes in both.
SAME_FAKES = """
from sightline.training.objectives import adversarial_pretraining as discriminated
discriminated.sample_fakes = lambda captioner, batch: batch.targets[:, 1:2]
"""


@pytest.mark.process
def test_two_processes_give_the_gradients_of_one(recipe: Path, tmp_path: Path) -> None:
    # Five pictures are three for one process and two for the other.
    text = recipe.read_text().replace("dropout: 0.2", "dropout: 0.0").replace("size: 4", "size: 5")
    recipe.write_text(text)
    batches = gradients_of_one_and_two(recipe, tmp_path, SAME_FAKES)
    assert len(batches) == 5
    for one, two in batches:
        assert "term discriminator" in one
        for parameter, gradient in one.items():
            torch.testing.assert_close(two[parameter], gradient, rtol=1e-5, atol=2e-6)
