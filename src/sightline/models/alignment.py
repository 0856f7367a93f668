"""Attention alignment: a network learns which regions matter, attention follows it (paper 0)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from sightline.config import require_at_least
from sightline.errors import ConfigError
from sightline.models.attention import AttentionOutput, MultiHeadAttention, split_heads

MASK_KEYS = "mask_keys"
"""What a mask network keeps of the picture: the one part of a memory that is the network's own."""


@dataclass(frozen=True)
class AlignmentConfig:
    """How masks are made, and how attention takes them up."""

    fusion: Literal["max", "average", "decay", "gate"] = "gate"  # eq. 6-9
    # `attention`: σ(q · k) of projections of its own, for any number of regions, as in the code of
    # Lu et al. 2021 that the paper follows. `linear`: σ(W h + b) as printed (eq. 2), one row of W
    # for each region; then `regions` is the number of cells in the grid.
    mask: Literal["attention", "linear"] = "attention"
    regions: int | None = None
    # ᾱ of eq. 3: over the regions there are (Lu et al.), or the mean of the heads ("an average
    # vector of attention heads").
    average: Literal["uniform", "head_mean"] = "uniform"
    eta: float = 0.1  # η of eq. 7
    temperature: float = 100_000  # TP of eq. 8, in training steps; as Lu et al.

    def __post_init__(self) -> None:
        if (self.mask == "linear") != (self.regions is not None):
            raise ConfigError(
                "model.alignment: 'regions' is required for mask: linear, and only for it"
            )
        require_at_least(1, "model.alignment", regions=self.regions)
        require_at_least(0, "model.alignment", eta=self.eta)
        if self.temperature <= 0:
            raise ConfigError("model.alignment.temperature: must be above 0")


class AlignedAttention(nn.Module):
    """Cross-attention with the mask network of its layer.

    It looks in two ways. Called, it gives the aligned attention (eq. 5-9) with the masks as
    constants: captioning never trains the mask network. `perturbed` gives the perturbed one (eq. 3)
    for the mask network to learn from.

    Aligned weights are not normalised again, as in Lu et al.: α^m lies between α and e α.
    """

    steps: Tensor

    def __init__(
        self, attention: MultiHeadAttention, width: int, heads: int, config: AlignmentConfig
    ) -> None:
        super().__init__()
        self.attention = attention
        self.config = config
        self.mask: AttentionMask | LinearMask
        if config.regions is None:
            self.mask = AttentionMask(width, heads)
        else:
            self.mask = LinearMask(width, heads, config.regions)
        if config.fusion == "gate":
            # W^g and b^g of eq. 10, of each head its own.
            bound = (width // heads) ** -0.5
            self.gate = nn.Parameter(torch.empty(heads, width // heads, 1).uniform_(-bound, bound))
            self.gate_bias = nn.Parameter(torch.zeros(heads, 1, 1))
        # How often the mask network was trained: s of eq. 8, kept with the weights.
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def remember(self, places: Tensor) -> dict[str, Tensor]:
        """What attention and masks need of places `(N, L, D)`."""
        return {**self.attention.remember(places), **self.mask.remember(places.detach())}

    def forward(
        self, x: Tensor, memory: dict[str, Tensor], visible: Tensor, *, weights: bool = False
    ) -> AttentionOutput:
        """Look with aligned attention. Weights are returned whether asked for or not."""
        query = self.attention.scaled_query(x, visible)
        raw = self.attention.weigh(query, memory["keys"], visible)
        with torch.no_grad():
            mask = self.mask(x, memory, visible)
        masked = raw * torch.exp(1 - mask)  # eq. 5
        gate = None
        match self.config.fusion:
            case "max":  # (always α^m, since e^(1 - m) is at least 1)
                used = torch.maximum(raw, masked)
            case "average":
                used = raw + self.config.eta * masked
            case "decay":
                share = torch.exp(-self.steps.to(raw.dtype) / self.config.temperature)
                used = share * raw + (1 - share) * masked
            case "gate":
                gate = torch.sigmoid(query @ self.gate + self.gate_bias)
                used = gate * raw + (1 - gate) * masked
                gate = gate.squeeze(-1)
        return AttentionOutput(
            self.attention.collect(used, memory["values"]), raw, used, mask, gate
        )

    def perturbed(self, x: Tensor, memory: dict[str, Tensor], visible: Tensor) -> AttentionOutput:
        """Look with perturbed attention (eq. 3); in training, this is counted as a step."""
        query = self.attention.scaled_query(x, visible)
        raw = self.attention.weigh(query, memory["keys"], visible)
        mask = self.mask(x, memory, visible)
        if self.config.average == "uniform":
            average = visible / visible.sum(-1, keepdim=True).to(raw.dtype)
        else:
            average = raw.mean(1, keepdim=True)
        used = mask * raw + (1 - mask) * average
        if self.training:
            self.steps += 1
        return AttentionOutput(self.attention.collect(used, memory["values"]), raw, used, mask)


class AttentionMask(nn.Module):
    """m = σ(q · k / √d) of each head, from projections of the decoder's state and the regions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def remember(self, places: Tensor) -> dict[str, Tensor]:
        return {MASK_KEYS: split_heads(self.key(places), self.heads)}

    def forward(self, x: Tensor, memory: dict[str, Tensor], visible: Tensor) -> Tensor:
        query = split_heads(self.query(x), self.heads)
        return torch.sigmoid(query @ memory[MASK_KEYS].transpose(-2, -1) / query.shape[-1] ** 0.5)


class LinearMask(nn.Module):
    """m = σ(W h + b) of each head (eq. 2), with one number for each cell of a grid.

    Where a picture lacks regions, those it has are counted in their order.
    """

    def __init__(self, width: int, heads: int, regions: int) -> None:
        super().__init__()
        self.heads, self.regions = heads, regions
        self.linear = nn.Linear(width, heads * regions)

    def remember(self, places: Tensor) -> dict[str, Tensor]:
        return {}

    def forward(self, x: Tensor, memory: dict[str, Tensor], visible: Tensor) -> Tensor:
        number = visible.long().cumsum(-1) - 1  # of each region, among those that are there
        most = int(number.max()) + 1
        if not most <= self.regions <= number.shape[-1]:
            raise ConfigError(
                f"model.alignment.regions: {self.regions}, but pictures have {most} regions; "
                "give the encoder's number, or use mask: attention"
            )
        masks = torch.sigmoid(split_heads(self.linear(x), self.heads))
        number = number.clamp(min=0).expand(*masks.shape[:3], -1)
        return masks.gather(-1, number)


def mean_mask(mask: Tensor, visible: Tensor) -> Tensor:
    """The mean of m `(N, H, Q, L)` over heads and the regions there are, `(N, Q)`.

    >>> mask, visible = torch.tensor([0.5, 1.0, 0.0]), torch.tensor([True, True, False])
    >>> mean_mask(mask.view(1, 1, 1, 3), visible.view(1, 1, 1, 3)).tolist()
    [[0.75]]
    """
    return ((mask * visible).sum(-1) / visible.sum(-1)).mean(1)


def perturbation(mask: Tensor, visible: Tensor) -> Tensor:
    """‖1 - m‖² `(N, Q)` (eq. 4): summed over the regions there are, the mean over heads.

    >>> mask, visible = torch.tensor([0.5, 1.0, 0.0]), torch.tensor([True, True, False])
    >>> perturbation(mask.view(1, 1, 1, 3), visible.view(1, 1, 1, 3)).tolist()
    [[0.25]]
    """
    return ((1 - mask) ** 2 * visible).sum(-1).mean(1)
