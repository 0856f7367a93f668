"""Our objectives, methods and encoders keep their laws; what breaks one is told so."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sightline.encoders.network import Network
from sightline.encoders.registry import (
    ENCODERS,
    TORCHVISION,
    ComputedWeights,
    EncoderEntry,
    Stage,
)
from sightline.errors import NotApplicableError
from sightline.explain.attention import attention
from sightline.explain.attribution import Attribution
from sightline.explain.methods import METHODS, Method
from sightline.explain.targets import Targets
from sightline.laws.encoders import ENCODER_LAWS, EncoderCase
from sightline.laws.explanations import METHOD_LAWS, MethodCase
from sightline.laws.law import judge
from sightline.laws.objectives import OBJECTIVE_LAWS, ObjectiveCase
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.objective import Objective, Term
from sightline.training.objectives.registry import OBJECTIVES, ObjectiveEntry

by_sentence = {"ids": lambda law: law.sentence.replace(" ", "_")}


@pytest.mark.parametrize("law", OBJECTIVE_LAWS, **by_sentence)
@pytest.mark.parametrize("name", OBJECTIVES.builtin)
def test_objectives(name, law) -> None:
    law.check(ObjectiveCase(name))


@pytest.mark.parametrize("law", METHOD_LAWS, **by_sentence)
@pytest.mark.parametrize("name", METHODS.builtin)
def test_methods(name, law) -> None:
    law.check(MethodCase(name))


@pytest.mark.parametrize("law", ENCODER_LAWS, **by_sentence)
def test_encoders(law) -> None:
    law.check(EncoderCase("efficientnet_lite0"))


def broken(laws, make: Callable[[], Any]) -> dict[str, str]:
    verdicts = judge("kind", "case", laws, make)
    return {verdict.law: verdict.why for verdict in verdicts if not verdict.holds}


@dataclass(frozen=True)
class Nothing:
    """No options."""


class Likelihood(Objective):
    def __init__(self, options: Nothing, change: str = "") -> None:
        self.change, self.seen = change, 0.0

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        logits = model(batch.regions, batch.inputs).logits
        losses = nn.functional.cross_entropy(
            logits.flatten(0, 2), batch.targets.flatten(), ignore_index=0, reduction="sum"
        )
        total = batch.weight * losses
        if self.change == "infinite":
            total = total / 0
        if self.change == "detached":
            total = total.detach().requires_grad_()
        if self.change == "unweighted":
            total = losses
        return {"nll": Term(total, "word")}

    def observe(self, values: dict[str, float]) -> None:
        self.seen += 1

    def state(self) -> dict[str, float]:
        return {"seen": self.seen}

    def load_state(self, state: dict[str, float]) -> None:
        if self.change != "forgetful":
            self.seen = state["seen"]


@pytest.mark.parametrize(
    ("change", "law", "says"),
    [
        ("infinite", "terms are finite numbers", "nll: is inf"),
        ("detached", "gradients reach the captioner", "no parameter has a gradient"),
        ("unweighted", "a batch of weight 0 weighs nothing", "for a batch of weight 0"),
        ("forgetful", "its state goes through a checkpoint", "state: {'seen': 0.0}, not {'seen'"),
    ],
)
def test_objectives_that_break_a_law(change, law, says, monkeypatch) -> None:
    for kind in ("", change):
        entry = ObjectiveEntry(partial(Likelihood, change=kind), Nothing)
        monkeypatch.setitem(OBJECTIVES.builtin, "case", entry)
        reasons = broken(OBJECTIVE_LAWS, lambda: ObjectiveCase("case"))
        assert bool(reasons) == bool(kind)
    assert says in reasons[law]


def halved(targets: Targets, change: str = "") -> Attribution:
    result = attention(targets)
    if change == "short":
        return result._replace(words=result.words[..., :1])
    if change == "batch":
        return result._replace(regions=result.regions / len(result.regions))
    if change == "absent":
        return result._replace(regions=result.regions + 1)
    if change == "later":
        return result._replace(words=result.words + 1)
    if change == "nowhere":
        raise NotApplicableError("not this captioner")
    if change == "pixels" and targets.x is not None:
        raise ValueError("not with pixels")
    return result


@pytest.mark.parametrize(
    ("change", "law", "says"),
    [
        ("short", "shapes and the logit are those of the interface", "words (B, N, T): has shape"),
        ("batch", "a batch equals its pictures one by one", "regions of picture 0 in a batch and"),
        ("absent", "regions that are not there have nothing", "more than nothing"),
        ("later", "later words have nothing, and change nothing", "for a later word"),
        ("pixels", "a picture with its encoder is explained", "ValueError: not with pixels"),
        ("nowhere", "a batch equals its pictures one by one", "it explains none of soft_attention"),
    ],
)
def test_methods_that_break_a_law(change, law, says, monkeypatch) -> None:
    for kind in ("", change):
        method = Method(partial(halved, change=kind), "Halved", "…")
        monkeypatch.setitem(METHODS.builtin, "case", method)
        reasons = broken(METHOD_LAWS, lambda: MethodCase("case"))
        assert bool(reasons) == bool(kind)
    assert says in reasons[law]


class Patches(Network):
    def __init__(self, change: str = "") -> None:
        super().__init__()
        self.change = change
        generator = torch.Generator().manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 6, 2, 2)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) / 4
        if change == "random":
            self.first.bias.data.normal_()

    def parts(self, stage: str) -> list[nn.Module]:
        if self.change == "apart" and stage == "stage3":
            return [nn.Sequential(self.first, self.second)]
        return [self.first, self.second][: {"stage2": 1, "stage3": 2}[stage]]

    def stage(self, x: Tensor, name: str) -> Tensor:
        features = super().stage(x, name)
        if self.change == "shared":
            features = features + features.mean(0)
        if self.change == "noisy":
            features = features + torch.rand_like(features)
        if self.change == "detached":
            features = features.detach().requires_grad_()
        if self.change == "ruleless":
            features = nn.functional.softplus(features)
        return features


def encoder(change: str) -> EncoderEntry:
    stages = {"stage2": Stage(8, 4, "down"), "stage3": Stage(6, 8, "down")}
    if change == "wide":
        stages["stage3"] = replace(stages["stage3"], dim=7)
    build = lambda convention, head: Patches(change)  # noqa: E731
    return EncoderEntry("case", build, 64, "stage3", stages, TORCHVISION, ComputedWeights("MIT"))


@pytest.mark.parametrize(
    ("change", "law", "says"),
    [
        ("wide", "grid and width are what its entry says, at every stage", "(2, 64, 6), not (2, 6"),
        ("shared", "a batch equals its pictures one by one", "picture 0 in a batch and alone"),
        ("noisy", "it is frozen and deterministic", "features of two runs: differs by"),
        ("random", "its spec makes it again", "has different content than expected"),
        ("apart", "stages follow one another", "stage3: does not go on from the one before"),
        ("detached", "gradients reach the picture", ""),
    ],
)
def test_encoders_that_break_a_law(change, law, says, monkeypatch) -> None:
    for kind in ("", change):
        monkeypatch.setitem(ENCODERS.builtin, "case", encoder(kind))
        reasons = broken(ENCODER_LAWS, lambda: EncoderCase("case"))
        assert bool(reasons) == bool(kind), reasons
    assert says in reasons[law]


def test_an_encoder_without_rules_is_told_so_by_the_operations_name(monkeypatch) -> None:
    monkeypatch.setitem(ENCODERS.builtin, "case", encoder("ruleless"))
    verdicts = judge("encoder", "case", ENCODER_LAWS, lambda: EncoderCase("case"))
    assert all(verdict.holds for verdict in verdicts)
    assert verdicts[-1].why.startswith("lrp does not apply (lrp: there is no rule for 'softplus'")
