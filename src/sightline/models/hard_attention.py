"""Show, attend and tell with hard attention (paper 1, section 4.1)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from sightline.errors import ConfigError
from sightline.models.interface import Memory
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig
from sightline.regions import Regions


@dataclass(frozen=True)
class HardAttentionConfig(SoftAttentionConfig):
    """As soft attention, and how a place is chosen."""

    look: Literal["expectation", "argmax", "sample"] = "expectation"  # when captioning
    # In training, a batch takes the expectation instead of a sample with this probability: one
    # throw for the whole batch, as in the original code.
    half_sampling: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.half_sampling <= 1:
            raise ConfigError(
                f"model: half_sampling must be a probability, not {self.half_sampling}"
            )


class HardAttention(SoftAttention):
    """One location is sampled per step; its log-probability carries the learning signal.

    Two signals feed the objective: `log_location`, log p(s_t | a), zero where the expectation was
    taken instead of a sample, and `entropy`, H[s_t]. A sample is a constant: it sends no gradient
    into the attention network. An expectation does, as in soft attention. (In the original code it
    does not, so that half of the batches teach the attention nothing but entropy.)
    """

    config: HardAttentionConfig

    def __init__(self, vocabulary_size: int, region_dim: int, config: HardAttentionConfig) -> None:
        super().__init__(vocabulary_size, region_dim, config)
        self._sampling = True  # what the last throw of `half_sampling` said

    def encode(self, regions: Regions) -> Memory:
        if self.training:
            self._sampling = bool(torch.rand(()) >= self.config.half_sampling)
        return super().encode(regions)

    def _look(self, energy: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        log_attention = functional.log_softmax(energy, -1)
        attention = log_attention.exp()
        # A region that is masked has log-probability -inf and probability 0: it adds no entropy.
        entropy = -(attention * log_attention.nan_to_num(neginf=0.0)).sum(-1)
        how = (
            self.config.look if not self.training else "sample" if self._sampling else "expectation"
        )
        if how == "expectation":
            weights = attention
            log_location = torch.zeros_like(entropy)
        else:
            if how == "argmax":
                place = attention.argmax(-1, keepdim=True)
            else:
                flat = attention.detach().flatten(0, 1)
                place = torch.multinomial(flat, 1).view(*attention.shape[:2], 1)
            weights = torch.zeros_like(attention).scatter(-1, place, 1.0)
            log_location = log_attention.gather(-1, place).squeeze(-1)
        return attention, weights, {"log_location": log_location, "entropy": entropy}
