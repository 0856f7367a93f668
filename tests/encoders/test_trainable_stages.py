"""The stages of an encoder that are trained."""

import pytest
import torch

from sightline.encoders.encoder import create_encoder
from sightline.encoders.registry import encoder_entry
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import ConfigError

# (VGG-16 and ResNet-50 have to be fetched; the parts of all networks are tested in test_registry.)
STAGES = list(encoder_entry("efficientnet_lite0").stages)
PAIRS = [(stage, other) for n, stage in enumerate(STAGES) for other in STAGES[1 : n + 1]]


@pytest.mark.parametrize(("stage", "train_from"), PAIRS)
def test_what_comes_before_and_the_tail_are_the_encoder(stage: str, train_from: str) -> None:
    encoder = create_encoder("efficientnet_lite0", stage=stage, size=96)
    trainable = TrainableStages(encoder, train_from)
    pixels = torch.randint(0, 256, (2, 96, 96, 3), dtype=torch.uint8)
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.9, 0.7]])
    whole, parted = encoder(pixels, windows), trainable(trainable.source(encoder)(pixels, windows))
    assert torch.equal(parted.vectors, whole.vectors)
    assert torch.equal(parted.mask, whole.mask)
    torch.testing.assert_close(parted.boxes, whole.boxes)


def test_training_the_tail_trains_the_encoder_and_nothing_before_it() -> None:
    encoder = create_encoder("efficientnet_lite0", stage="stage5", size=64)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    trainable = TrainableStages(encoder, "stage5")
    fingerprint = trainable.fingerprint
    pixels = torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8)
    source = trainable.source(encoder)(pixels, torch.tensor([[0.0, 0.0, 1.0, 1.0]]))
    optimizer = torch.optim.SGD(trainable.parameters(), 0.1)
    trainable(source).vectors.square().mean().backward()
    optimizer.step()
    moved = {n for n, t in encoder.state_dict().items() if not torch.equal(t, before[n])}
    trained = {id(parameter) for parameter in trainable.parameters()}
    own = {n for n, parameter in encoder.named_parameters() if id(parameter) in trained}
    assert moved == own
    assert 0 < len(own) < len(before)
    assert trainable.fingerprint != fingerprint


@pytest.mark.parametrize("train_from", ["stage3", "head", "stage9"])
def test_only_a_stage_of_the_encoder_that_has_one_before_it(train_from: str) -> None:
    encoder = create_encoder("efficientnet_lite0", stage="stage5", size=64)
    with pytest.raises(ConfigError, match="can be trained from stage4 or stage5, not"):
        TrainableStages(encoder, train_from)
