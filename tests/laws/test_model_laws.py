"""Each law is broken by a captioner that breaks it, and says why in one line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sightline.explain.lrp.mode import PLAIN
from sightline.laws.explanations import EXPLAINABLE
from sightline.laws.law import judge
from sightline.laws.models import MODEL_LAWS, ModelCase
from sightline.models.interface import CaptionModel, Memory, State, Step, Unrolled
from sightline.models.layers import masked_mean
from sightline.models.registry import MODELS, ModelEntry
from sightline.regions import Regions


@dataclass(frozen=True)
class Nothing:
    """No options."""


class Plain(CaptionModel):
    """A GRU over words and the region it looks at: it keeps every law, with no `unroll`."""

    def __init__(self, vocabulary_size: int, region_dim: int, config: Nothing) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(region_dim, 8)
        self.embedding = nn.Embedding(vocabulary_size, 8)
        self.cell = nn.GRUCell(16, 8)
        self.output = nn.Linear(16, vocabulary_size)

    def encode(self, regions: Regions) -> Memory:
        vectors = self.project(regions.vectors)
        return {
            "regions": vectors,
            "mask": regions.mask,
            "mean": masked_mean(vectors, regions.mask),
        }

    def start(self, memory: Memory, rows: int = 1) -> State:
        return {"hidden": memory["mean"].unsqueeze(1).repeat(1, rows, 1)}

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        hidden = state["hidden"]
        energy = hidden @ memory["regions"].mT
        energy = energy.masked_fill(~memory["mask"][:, None], float("-inf"))
        attention = torch.softmax(energy, -1)
        context = attention @ memory["regions"]
        x = torch.cat([self.embedding(tokens), context], -1)
        hidden = self.cell(x.flatten(0, 1), hidden.flatten(0, 1)).view_as(hidden)
        return Step(
            self.output(torch.cat([hidden, context], -1)), {"hidden": hidden}, attention, {}
        )


class WrongShape(Plain):
    def forward(self, regions: Regions, tokens: Tensor) -> Unrolled:
        unrolled = super().forward(regions, tokens)
        return unrolled._replace(attention=unrolled.attention[..., :2])


class OtherPass(Plain):
    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        unrolled = super().unroll(tokens, memory)
        return unrolled._replace(logits=unrolled.logits * 1.001)


class SharedBatch(Plain):
    def encode(self, regions: Regions) -> Memory:
        memory = super().encode(regions)
        return memory | {"mean": memory["mean"] + memory["mean"].mean(0)}


class SharedStep(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        hidden = state["hidden"]
        return super().step(tokens, {"hidden": hidden + hidden.mean(0)}, memory)


class SharedRows(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        hidden = state["hidden"]
        return super().step(tokens, {"hidden": hidden + hidden.mean(1, keepdim=True)}, memory)


class Foreseeing(Plain):
    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        unrolled = super().unroll(tokens, memory)
        return unrolled._replace(logits=unrolled.logits + tokens.sum(2)[..., None, None])


class Unmasked(Plain):
    def encode(self, regions: Regions) -> Memory:
        return super().encode(regions) | {"mask": torch.ones_like(regions.mask)}


class Unnormalised(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        step = super().step(tokens, state, memory)
        return step._replace(attention=step.attention / 2)


class Blind(Plain):
    def encode(self, regions: Regions) -> Memory:
        memory = super().encode(regions)
        return memory | {name: 0 * memory[name] for name in ("regions", "mean")}


class ShortMemory(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        return super().step(tokens, self.start(memory, tokens.shape[1]), memory)


class Forgetful(Plain):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.scale = torch.rand(())  # neither a parameter nor a buffer

    def encode(self, regions: Regions) -> Memory:
        memory = super().encode(regions)
        return memory | {"mean": memory["mean"] * self.scale}


class Noisy(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        step = super().step(tokens, state, memory)
        return step._replace(logits=step.logits + torch.rand_like(step.logits))


class Untrainable(Plain):
    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        step = super().step(tokens, state, memory)
        return step._replace(logits=step.logits.detach().requires_grad_())


class StateOutside(Plain):
    """Keeps its state where a beam search cannot reorder it."""

    def start(self, memory: Memory, rows: int = 1) -> State:
        state = super().start(memory, rows)
        self.hidden = state["hidden"]
        return state

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        step = super().step(tokens, {"hidden": self.hidden}, memory)
        self.hidden = step.state["hidden"]
        return step


class Curved(Plain):
    """An operation of its own that hides what carries relevance from LRP."""

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        step = super().step(tokens, state, memory)
        return step._replace(logits=nn.functional.softplus(step.logits))


class Crashing(Plain):
    def start(self, memory: Memory, rows: int = 1) -> State:
        raise RuntimeError("two\nlines")


def broken(kind: type[CaptionModel], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setitem(MODELS.builtin, "case", ModelEntry(kind, Nothing, ""))
    case: Callable[[], ModelCase] = lambda: ModelCase("case", {})  # noqa: E731
    verdicts = judge("model", "case", [*MODEL_LAWS, EXPLAINABLE], case)
    assert all("\n" not in verdict.why for verdict in verdicts)
    return {verdict.law: verdict.why for verdict in verdicts if not verdict.holds}


def test_a_plain_captioner_keeps_every_law(monkeypatch) -> None:
    assert broken(Plain, monkeypatch) == {}


@pytest.mark.parametrize(
    ("kind", "law", "says"),
    [
        (WrongShape, "shapes are those of the interface", "has shape (3, 2, 8, 2), not (3, 2, 8,"),
        (OtherPass, "the teacher-forced pass equals the loop of step", "logits: differs by"),
        (SharedBatch, "a batch equals its pictures one by one", "picture 0 in a batch and alone"),
        (SharedRows, "captions of one picture do not know of each other", "caption 0 with another"),
        (Foreseeing, "what follows the end changes nothing before it", "logits: differs by"),
        (Foreseeing, "the picture and every previous word matter, and no later one", "before it"),
        (Unmasked, "regions that are not there change nothing", "more than nothing"),
        (Unnormalised, "attention is a distribution over the regions that are there", "sum of att"),
        (Blind, "the picture and every previous word matter, and no later one", "another picture"),
        (ShortMemory, "the picture and every previous word matter, and no later one", "forgotten"),
        (Forgetful, "saving and loading change nothing", "logits after loading: differs by"),
        (Noisy, "evaluation is deterministic", "logits of two runs: differs by"),
        (Untrainable, "cross-entropy trains it", "no parameter has a gradient"),
        (StateOutside, "a beam search may reorder its states", "differs by"),
        (SharedStep, "pictures that stay do not notice those that leave", "logits: differs by"),
        (Crashing, "the teacher-forced pass equals the loop of step", "RuntimeError: two lines"),
    ],
)
def test_a_broken_law_is_named_with_its_reason(kind, law: str, says: str, monkeypatch) -> None:
    reasons = broken(kind, monkeypatch)
    assert says in reasons[law]
    if kind is OtherPass:
        assert "a batch equals its pictures one by one" not in reasons


def test_a_method_that_does_not_apply_is_a_remark(monkeypatch) -> None:
    monkeypatch.setitem(MODELS.builtin, "case", ModelEntry(Curved, Nothing, ""))
    (verdict,) = judge("model", "case", [EXPLAINABLE], lambda: ModelCase("case", {}))
    assert verdict.holds
    assert verdict.why.startswith("lrp does not apply (lrp: there is no rule for 'softplus'")


def test_an_account_that_does_not_close_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("sightline.explain.lrp.mode.PLAIN", {*PLAIN, "softplus"})
    monkeypatch.setitem(MODELS.builtin, "case", ModelEntry(Curved, Nothing, ""))
    (verdict,) = judge("model", "case", [EXPLAINABLE], lambda: ModelCase("case", {}))
    assert "not accounted for, so that LRP would be wrong" in verdict.why
