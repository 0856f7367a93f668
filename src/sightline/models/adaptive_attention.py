"""Adaptive attention: a word comes from the picture or from a visual sentinel (paper 4)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sightline.config import Share, Width
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel, Memory, State, Step, Unrolled
from sightline.models.layers import Dropout, barrier, masked_mean
from sightline.models.sentinel import AdaptiveModule, SentinelLSTM
from sightline.regions import Regions


@dataclass(frozen=True)
class AdaptiveAttentionConfig:
    """Sizes of the model; the defaults are the paper's."""

    word_width: Width = 512  # of the embedding, and of v_g beside it
    state_width: Width = 512  # n; also of the regions V, for ĉ and h are added
    attention_width: Width = 512
    # On V, v_g and the output, as in the original code, and on words. (That has it on the
    # recurrence and on the logits too.)
    dropout: Share = 0.5

    def __post_init__(self) -> None:
        if min(self.word_width, self.state_width, self.attention_width) < 1:
            raise ConfigError(
                "model: word_width, state_width and attention_width must be at least 1"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model: dropout must be from 0 to below 1, not {self.dropout}")


class AdaptiveAttention(CaptionModel):
    """The top-down LSTM and the adaptive module alone (paper 4, section 3.1; Lu et al. 2017).

    The signal `sentinel` of a word is β_t, the share of the sentinel: how much does *not* come
    from the regions. (It is not called `beta` because that of soft attention, a gate on the
    context, means the opposite.) A word's attention is α, which sums to one over the regions
    whatever β_t is.
    """

    config: AdaptiveAttentionConfig

    def __init__(
        self, vocabulary_size: int, region_dim: int, config: AdaptiveAttentionConfig
    ) -> None:
        super().__init__()
        self.config = config
        n, m = config.state_width, config.word_width
        self.project = nn.Linear(region_dim, n, bias=False)  # W_a
        self.project_mean = nn.Linear(region_dim, m, bias=False)  # W_b
        self.embedding = nn.Embedding(vocabulary_size, m)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        # x_t = [w_t : v_g], in the order of `SentinelLSTM`: the sentinel's gate, then the LSTM's.
        self.word_to_gates = nn.Linear(m, 5 * n, bias=False)
        self.mean_to_gates = nn.Linear(m, 5 * n, bias=False)
        self.top_down = SentinelLSTM(n)
        self.adaptive = AdaptiveModule(n, config.attention_width)
        self.output = nn.Linear(n, vocabulary_size)  # fc
        self.dropout = Dropout(config.dropout)

    def encode(self, regions: Regions) -> Memory:
        vectors = self.dropout(torch.relu(self.project(regions.vectors)))  # V
        mean = masked_mean(regions.vectors, regions.mask)
        mean = self.dropout(torch.relu(self.project_mean(mean)))  # v_g
        return {
            "regions": vectors,
            "keys": self.adaptive.key(vectors),
            "barrier": barrier(regions.mask, vectors),
            "mean_gates": self.mean_to_gates(mean),
        }

    def start(self, memory: Memory, rows: int = 1) -> State:
        regions = memory["regions"]
        nothing = regions.new_zeros(len(regions), rows, self.config.state_width)
        return {"hidden": nothing, "cell": nothing}

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        entering = self._enter(tokens.unsqueeze(2), memory).squeeze(2)
        state, summary, attention, beta = self._advance(entering, state, memory)
        return Step(self._predict(summary), state, attention, {"sentinel": beta})

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """Words enter and leave for all steps at once; only the recurrence is a loop."""
        state = self.start(memory, tokens.shape[1])
        summaries, attentions, betas = [], [], []
        for entering in self._enter(tokens, memory).unbind(2):
            state, summary, attention, beta = self._advance(entering, state, memory)
            summaries.append(summary)
            attentions.append(attention)
            betas.append(beta)
        return Unrolled(
            self._predict(torch.stack(summaries, 2)),
            torch.stack(attentions, 2),
            {"sentinel": torch.stack(betas, 2)},
        )

    def _enter(self, tokens: Tensor, memory: Memory) -> Tensor:
        """What words `(B, K, T)` and v_g bring to the gates, `(B, K, T, 5n)`."""
        words = self.dropout(self.embedding(tokens))
        gates: Tensor = self.word_to_gates(words) + memory["mean_gates"][:, None, None]
        return gates

    def _advance(
        self, entering: Tensor, state: State, memory: Memory
    ) -> tuple[State, Tensor, Tensor, Tensor]:
        """One step of the recurrence: the state, ĉ_t + h_t for the output layer, α and β_t."""
        hidden, cell, sentinel = self.top_down(entering, state["hidden"], state["cell"])
        context, attention, beta = self.adaptive(hidden, sentinel, memory)
        return {"hidden": hidden, "cell": cell}, context + hidden, attention, beta

    def _predict(self, summary: Tensor) -> Tensor:
        logits: Tensor = self.output(self.dropout(summary))
        return logits
