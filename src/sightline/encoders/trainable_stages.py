"""The last stages of an encoder, to be trained together with a captioner."""

import hashlib
from typing import Any

import torch
from torch import Tensor, nn

from sightline.encoders.encoder import Encoder, SideBySide
from sightline.encoders.registry import encoder_entry
from sightline.errors import ConfigError
from sightline.regions import Regions, grid_boxes


class TrainableStages(nn.Module):
    """Regions of the stage before `train_from` in, regions of the encoder's own stage out.

    The parts are the encoder's own, so that training them trains it. All before them stays as it
    was: what it gives of a picture is encoded once, and read from a cache ever after.

    Batch norms are folded into the convolutions, which is to train with their statistics frozen.

    >>> from sightline.encoders.encoder import create_encoder
    >>> encoder = create_encoder("efficientnet_lite0", size=64)
    >>> trainable = TrainableStages(encoder, "stage5")
    >>> trainable.source(encoder).stage, sum(p.numel() for p in trainable.parameters())
    ('stage4', 2657312)
    """

    def __init__(self, encoder: Encoder, train_from: str) -> None:
        super().__init__()
        if isinstance(encoder, SideBySide):
            raise ConfigError(
                f"encoder.train_from: {encoder.name} cannot be trained; only single encoders can"
            )
        stages = list(encoder_entry(encoder.name).stages)
        later = stages[1 : stages.index(encoder.stage) + 1]
        if train_from not in later:
            raise ConfigError(
                f"encoder.train_from: {encoder.name} up to {encoder.stage} can be trained from "
                f"{' or '.join(later) or 'nowhere'}, not '{train_from}'"
            )
        self.train_from = train_from
        self._source = stages[stages.index(train_from) - 1]
        frozen = len(encoder.network.parts(self._source))
        self.parts = nn.Sequential(*encoder.network.parts(encoder.stage)[frozen:])
        self.parts.requires_grad_(True)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the same in half precision and in full."""
        digest = hashlib.sha256()
        for name, tensor in self.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.half().contiguous().cpu().numpy().tobytes())
        return digest.hexdigest()

    def source(self, encoder: Encoder) -> Encoder:
        """The encoder of what these stages are given."""
        spec: dict[str, Any] = encoder.spec | {"stage": self._source}
        return Encoder.from_spec(spec)

    def forward(self, regions: Regions) -> Regions:
        windows = torch.cat([regions.boxes[:, 0, :2], regions.boxes[:, -1, 2:]], -1)
        side = round(regions.vectors.shape[1] ** 0.5)
        before = torch.unflatten(regions.vectors, 1, (side, side)).permute(0, 3, 1, 2)
        grid: Tensor = self.parts(before)
        vectors = grid.permute(0, 2, 3, 1).flatten(1, 2)
        boxes = grid_boxes(grid.shape[2], grid.shape[3], windows)
        return Regions(vectors, vectors.new_ones(vectors.shape[:2], dtype=torch.bool), boxes)
