import pytest
import torch
from torch import nn

from sightline.decoding.beam import BeamOptions, beam_search
from sightline.models import packed
from sightline.models.packed import PackedLinear, pack
from sightline.regions import Regions
from tiny_models import CASES, REGION_DIM, create

pytestmark = pytest.mark.skipif(
    not packed._can_pack([]), reason="this processor has no packed products"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_packed_captioner_says_the_same_and_shares_its_weights(case):
    model = create(*case).float()
    vectors = torch.randn(3, 5, REGION_DIM)
    regions = Regions(vectors, torch.ones(3, 5, dtype=torch.bool), torch.zeros(3, 5, 4))
    same = pack(model)
    layers = [module for module in same.modules() if isinstance(module, PackedLinear)]
    assert len(layers) == sum(type(module) is nn.Linear for module in model.modules()) > 0
    assert same.state_dict().keys() == model.state_dict().keys()
    shared = zip(same.parameters(), model.parameters(), strict=True)
    assert all(one is other for one, other in shared)
    with torch.no_grad():
        plain = beam_search(model, model.encode(regions), BeamOptions())
        fast = beam_search(same, same.encode(regions), BeamOptions())
    assert torch.equal(fast.tokens, plain.tokens)
    torch.testing.assert_close(fast.log_probs, plain.log_probs, rtol=1e-4, atol=1e-4)


def test_a_packed_row_does_not_depend_on_the_rows_beside_it():
    torch.manual_seed(0)
    layer, rows = PackedLinear(nn.Linear(512, 2305)), torch.randn(160, 512)
    with torch.no_grad():
        together = layer(rows)
        for count in (1, 5, 40):
            assert torch.equal(layer(rows[:count]), together[:count])
        assert layer(rows[:0]).shape == (0, 2305)


def test_a_packed_layer_has_gradients_and_is_not_packed_for_them():
    layer = PackedLinear(nn.Linear(3, 2))
    x = torch.randn(4, 3, requires_grad=True)
    layer(x).sum().backward()
    torch.testing.assert_close(x.grad, layer.weight.detach().sum(0).expand(4, 3))


@pytest.mark.parametrize(
    "model", [nn.Linear(2, 2).double(), nn.Linear(2, 2, device="meta")], ids=["double", "meta"]
)
def test_what_cannot_be_packed_stays_as_it_is(model):
    assert pack(model) is model


def test_a_large_captioner_is_not_there_twice(monkeypatch):
    monkeypatch.setattr(packed, "_MOST_PARAMETERS", 5)
    model = nn.Sequential(nn.Linear(2, 2))
    assert pack(model) is model
