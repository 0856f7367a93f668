"""What holds for every captioner of ours: the laws of plug-ins, and what is ours alone."""

import pytest
import torch
from torch.nn import functional

from sightline.laws.explanations import EXPLAINABLE
from sightline.laws.models import MODEL_LAWS, ModelCase
from sightline.models.interface import select_rows
from sightline.models.registry import MODELS
from sightline.text.vocabulary import PAD
from tiny_models import CASES, VOCABULARY


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request) -> ModelCase:
    name, variant = request.param
    return ModelCase(name, MODELS.builtin[name].tiny[variant])


@pytest.mark.parametrize("law", MODEL_LAWS, ids=lambda law: law.sentence.replace(" ", "_"))
def test_law(law, case) -> None:
    law.check(case)


def test_it_can_be_explained_by_every_method(case) -> None:
    skipped = EXPLAINABLE.check(case)
    if "transformer" in case.name:
        assert skipped is None
    else:  # what is for attention layers alone
        assert skipped.count("does not apply") == 1
        assert skipped.startswith("gradient_rollout does not apply")


def test_every_previous_word_matters_to_every_later_one(case):
    changed = case.tokens.clone()
    changed[:, :, 1] = (case.tokens[:, :, 1] - 4 + 1) % (VOCABULARY - 4) + 4
    difference = (case.model(case.regions, changed).logits - case.run().logits).abs().amax(-1)
    assert (difference[:, :, 1:] > 1e-10).all()


def test_every_parameter_learns(case):
    model, regions, tokens = case.model.train(), case.regions, case.tokens
    for _ in range(8):  # several throws of dropout and of half-sampling
        unrolled = model(regions, tokens[..., :-1])
        loss = functional.cross_entropy(
            unrolled.logits.flatten(0, 2), tokens[..., 1:].flatten(), ignore_index=PAD
        )
        if "log_location" in unrolled.signals:  # what the likelihood alone does not train
            loss = loss - unrolled.signals["log_location"].mean()
        if "mask" in unrolled.signals:
            loss = (
                loss
                - model(regions, tokens[..., :-1], perturb=True).perturbed.logits[..., 4].mean()
            )
        if hasattr(model, "discriminator"):
            loss = loss + model(regions, tokens[..., :-1], tokens).verdicts.mean()
        loss.backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_select_rows_reorders_picture_by_picture():
    state = {"x": torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])}
    selected = select_rows(state, torch.tensor([[1, 1, 0], [0, 1, 1]]))
    assert selected["x"].squeeze(-1).tolist() == [[2, 2, 1], [3, 4, 4]]
