"""Show, attend and tell with soft attention (paper 1, sections 3.1 and 4.2)."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.config import Range, Share, Width
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel, Memory, State, Step, Unrolled
from sightline.models.layers import (
    Dropout,
    additive_energy,
    barrier,
    initialise_recurrence,
    lstm,
    masked_mean,
)
from sightline.regions import Regions


@dataclass(frozen=True)
class SoftAttentionConfig:
    """Sizes of the model; defaults suit Flickr8k (the paper's COCO model has a state of 1,800)."""

    # Annotation vectors are projected to it; 0: taken as they are.
    region_width: Annotated[int, Range(0, 16_384)] = 512
    word_width: Width = 512  # m, also the width of the deep output layer
    state_width: Width = 512  # n
    attention_width: Width = 512
    # Twice in the output layer, as in the original; ours, on projected regions and on words too.
    dropout: Share = 0.5

    def __post_init__(self) -> None:
        if min(self.word_width, self.state_width, self.attention_width) < 1:
            raise ConfigError(
                "model: word_width, state_width and attention_width must be at least 1"
            )
        if self.region_width < 0:
            raise ConfigError("model: region_width must be at least 1, or 0 for no projection")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model: dropout must be from 0 to below 1, not {self.dropout}")


class SoftAttention(CaptionModel):
    """An LSTM that looks at a weighted mean of the regions before every word.

    Departures from the printed equations, all taken from the original code: a tanh in the deep
    output layer, tanh of an affine map for each init MLP, and the gate β, a scalar per step from
    h(t-1). Ours: annotation vectors are first projected to `region_width` by a learned linear map,
    because today's encoders give vectors wider than the paper's 512.
    """

    config: SoftAttentionConfig

    def __init__(self, vocabulary_size: int, region_dim: int, config: SoftAttentionConfig) -> None:
        super().__init__()
        self.config = config
        n, m, a = config.state_width, config.word_width, config.attention_width
        d = config.region_width or region_dim
        self.project = nn.Linear(region_dim, d) if config.region_width else nn.Identity()
        self.init_hidden = nn.Linear(d, n)  # f_init,h
        self.init_cell = nn.Linear(d, n)  # f_init,c
        self.embedding = nn.Embedding(vocabulary_size, m)  # E; the original starts from a zero row
        self.key = nn.Linear(d, a)  # f_att: the part of e_ti that depends on a_i
        self.score = nn.Parameter(torch.empty(a))  # (a constant would cancel in the softmax)
        # All that h_{t-1} is multiplied with, in one product: the query of f_att, the gate β, and
        # its part of T. The other parts of T take E y_{t-1} and ẑ_t.
        self.from_hidden = nn.Linear(n, a + 1 + 4 * n)
        self.word_to_gates = nn.Linear(m, 4 * n, bias=False)
        self.context_to_gates = nn.Linear(d, 4 * n, bias=False)
        self.state_to_output = nn.Linear(n, m)  # L_h
        self.context_to_output = nn.Linear(d, m, bias=False)  # L_z
        self.output = nn.Linear(m, vocabulary_size)  # L_o
        self.dropout = Dropout(config.dropout)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        bound = self.config.attention_width**-0.5
        nn.init.uniform_(self.score, -bound, bound)
        initialise_recurrence(self.from_hidden)

    def encode(self, regions: Regions) -> Memory:
        annotations = self.dropout(self.project(regions.vectors))
        mean = masked_mean(annotations, regions.mask)
        return {
            "annotations": annotations,
            "keys": self.key(annotations),
            "barrier": barrier(regions.mask, annotations),
            "hidden": torch.tanh(self.init_hidden(mean)),
            "cell": torch.tanh(self.init_cell(mean)),
        }

    def start(self, memory: Memory, rows: int = 1) -> State:
        return {
            name: memory[name].unsqueeze(1).expand(-1, rows, -1).contiguous()
            for name in ("hidden", "cell")
        }

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        # In a beam search most rows share their last word with others: each is taken in once.
        distinct, inverse = torch.unique(tokens, return_inverse=True)
        words = self.dropout(self.embedding(distinct))
        gates, words = self.word_to_gates(words)[inverse], words[inverse]
        state, context, attention, signals = self._advance(gates, state, memory)
        logits = self._predict(words, state["hidden"], context)
        return Step(logits, state, attention, signals)

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """Words enter and leave for all steps at once; only the recurrence is a loop."""
        words = self.dropout(self.embedding(tokens))
        state = self.start(memory, tokens.shape[1])
        hidden, contexts, attentions, signals = [], [], [], []
        # (To index step t instead would make the gradient of each step as large as that of all.)
        for word_gates in self.word_to_gates(words).unbind(2):
            state, context, attention, signal = self._advance(word_gates, state, memory)
            hidden.append(state["hidden"])
            contexts.append(context)
            attentions.append(attention)
            signals.append(signal)
        logits = self._predict(words, torch.stack(hidden, 2), torch.stack(contexts, 2))
        return Unrolled(
            logits,
            torch.stack(attentions, 2),
            {name: torch.stack([signal[name] for signal in signals], 2) for name in signals[0]},
        )

    def _advance(
        self, word_gates: Tensor, state: State, memory: Memory
    ) -> tuple[State, Tensor, Tensor, dict[str, Tensor]]:
        """One step of the recurrence, up to but not including the output layer."""
        n, a = self.config.state_width, self.config.attention_width
        query, gate, gates = self.from_hidden(state["hidden"]).split([a, 1, 4 * n], -1)
        energy = additive_energy(memory["keys"], query, self.score)
        attention, weights, signals = self._look(energy + memory["barrier"][:, None])
        beta = torch.sigmoid(gate)
        context = beta * (weights @ memory["annotations"])
        gates = gates + word_gates + self.context_to_gates(context)
        hidden, cell = lstm(gates, state["cell"])
        signals["beta"] = beta.squeeze(-1)
        return {"hidden": hidden, "cell": cell}, context, attention, signals

    def _look(self, energy: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """From energies `(B, K, L)`: the attention α, the weights of the context, and signals."""
        attention = functional.softmax(energy, -1)
        return attention, attention, {}

    def _predict(self, words: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """The deep output layer (paper 1, section 3.1.2), with the tanh of the original code."""
        mixed = words + self.state_to_output(self.dropout(hidden)) + self.context_to_output(context)
        logits: Tensor = self.output(self.dropout(torch.tanh(mixed)))
        return logits
