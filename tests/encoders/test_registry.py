"""The table of encoders says the truth about the networks."""

import pytest
import torch

from sightline.encoders.registry import ENCODERS, encoder_entry, list_encoders
from sightline.errors import SightlineError


@pytest.fixture(scope="module", params=list(ENCODERS.builtin))
def card_and_network(request):
    """Each network with whatever is in memory for weights: only shapes count here."""
    card = ENCODERS.builtin[request.param]
    with torch.device("meta"):
        network = card.build(card.convention, True)
    return card, network.to_empty(device="cpu").eval()


@pytest.mark.parametrize("size", [97, 132])
def test_every_stage_has_the_grid_and_width_it_promises(card_and_network, size):
    card, network = card_and_network
    for name, stage in card.stages.items():
        with torch.inference_mode():
            features = network.stage(torch.zeros(1, 3, size, size), name)
        cells = stage.cells(size)
        assert features.shape == (1, stage.dim, cells, cells), name


def test_the_grids_of_the_papers():
    grids = {
        (name, stage): place.cells(card.size)
        for name, card in ENCODERS.builtin.items()
        for stage, place in card.stages.items()
    }
    for name in list_encoders():
        if ENCODERS.builtin[name].size == 224:
            assert grids[name, "stage4"] == 14
            assert grids[name, "stage5"] == 7
    assert grids["efficientnet_lite2", "head"] == 9


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("vgg11", 132_863_336),
        ("vgg16", 138_357_544),
        ("vgg19", 143_667_240),
        ("resnet50", 25_557_032),
        ("resnet101", 44_549_160),
        ("efficientnet_lite0", 4_652_008),
    ],
)
def test_published_parameter_counts(name, count):
    assert ENCODERS.builtin[name].parameters == count


def test_parameter_counts_are_those_of_the_networks(card_and_network):
    card, network = card_and_network
    assert sum(parameter.numel() for parameter in network.parameters()) == card.parameters


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(SightlineError, match="'resnet18'; did you mean 'resnet"):
        encoder_entry("resnet18")
