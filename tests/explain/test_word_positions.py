"""Words are followed however a captioner takes them: at once, step by step, again and again."""

from types import MethodType

import pytest
import torch
from torch import Tensor, nn

from sightline.errors import NotApplicableError
from sightline.explain.gradients import gradient_input
from sightline.explain.lrp.method import lrp
from sightline.explain.methods import METHODS
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel, Memory, State, Step
from sightline.regions import Regions
from tiny_models import CASES, REGION_DIM, VOCABULARY, create


@pytest.fixture
def regions() -> Regions:
    torch.manual_seed(1)
    mask = torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3] = False
    return Regions(torch.randn(2, 5, REGION_DIM).double(), mask, torch.rand(2, 5, 4).double())


def ask(model: CaptionModel, regions: Regions) -> Targets:
    # As many words as a tiny captioner's vectors are wide, which must not be confused.
    tokens = torch.tensor([[[1, 5, 5, 7]], [[1, 9, 4, 5]]])
    places = torch.tensor([[3, 0, 2], [1, 3, 2]])
    return Targets(model, regions, tokens, places, torch.tensor([[4, 5, 6], [7, 8, 9]]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_plain_loop_is_explained_as_the_parallel_pass_is(case, regions) -> None:
    parallel, loop = create(*case), create(*case)
    loop.unroll = MethodType(CaptionModel.unroll, loop)
    one, other = gradient_input(ask(parallel, regions)), gradient_input(ask(loop, regions))
    for name in ("total", "regions", "words"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=0, atol=1e-9)
    assert (one.words.abs().sum((1, 2)) > 1e-6).all()
    account = lrp(ask(loop, regions))
    whole = account.regions.sum(-1) + account.words.sum(-1) + account.bias + account.epsilon
    torch.testing.assert_close(whole, account.total, rtol=0, atol=1e-9)


class Bag(CaptionModel):
    """The next word's logits: the mean region, and the sum of all words so far."""

    def __init__(self, lookup: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.position = nn.Embedding(9, 4)
        self.region, self.output = nn.Linear(REGION_DIM, 4), nn.Linear(4, VOCABULARY)
        self.lookup = lookup

    def encode(self, regions: Regions) -> Memory:
        there = regions.mask[..., None]
        mean = (regions.vectors * there).sum(1) / there.sum(1)
        attention = regions.mask / regions.mask.sum(1, keepdim=True)
        return {"mean": self.region(mean), "attention": attention}

    def start(self, memory: Memory, rows: int = 1) -> State:
        nothing = memory["mean"].new_zeros(len(memory["mean"]), rows, 0, dtype=torch.long)
        return {"said": nothing}

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        said = torch.cat([state["said"], tokens[:, :, None]], 2)
        if self.lookup == "embedding":
            words = self.embedding(said)
        elif self.lookup == "index":
            words = self.embedding.weight[said]
        elif self.lookup == "flat":
            words = self.embedding(said.reshape(-1)).view(*said.shape, 4)
        else:
            words = nn.functional.one_hot(said, VOCABULARY).double() @ self.embedding.weight
        # Positions are looked up as well, and are nobody's words.
        words = words + self.position(torch.ones_like(said).cumsum(2))
        mixed = words.sum(2) + memory["mean"][:, None]
        attention = memory["attention"][:, None].expand(-1, tokens.shape[1], -1)
        return Step(self.output(mixed), {"said": said}, attention, {})


@pytest.mark.parametrize("lookup", ["embedding", "index", "flat"])
def test_words_that_are_looked_up_again_and_again(lookup: str, regions) -> None:
    torch.manual_seed(0)
    model = Bag(lookup).double()
    targets = ask(model, regions)
    account = lrp(targets, epsilon=0.0)
    # Everything is linear: what a word adds to a logit is what it has of it.
    added = model.embedding(targets.tokens[:, 0]) @ model.output.weight.T  # (B, T, V)
    expected = added[torch.arange(2)[:, None], :, targets.words]
    before = torch.arange(4) <= targets.places[..., None]
    torch.testing.assert_close(account.words, expected * before)
    assert (account.bias.abs() > 1e-6).all()  # where positions went
    whole = account.regions.sum(-1) + account.words.sum(-1) + account.bias
    torch.testing.assert_close(whole, account.total)


def test_words_that_cannot_be_followed_are_said_so(regions) -> None:
    targets = ask(Bag("one_hot").double(), regions)
    for name, method in METHODS.builtin.items():
        if name in ("attention", "occlusion"):
            assert method.attribute(targets).regions.shape == (2, 3, 5)
        else:
            with pytest.raises(NotApplicableError, match="Bag: it looks up no vector for its word"):
                method.attribute(targets)
