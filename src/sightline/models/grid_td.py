"""Grid-TD: adaptive attention between two LSTMs (paper 4, section 3.1 and figure 2)."""

import torch
from torch import Tensor, nn

from sightline.models.adaptive_attention import AdaptiveAttention, AdaptiveAttentionConfig
from sightline.models.interface import Memory, State
from sightline.models.layers import initialise_recurrence, lstm


class GridTD(AdaptiveAttention):
    """A top-down LSTM looks, and a language LSTM speaks of what it saw.

    To adaptive attention it adds the language LSTM, which takes ĉ_t and h¹_t. Its own state enters
    the top-down LSTM at the next word: x¹_t = [h²_{t-1} : v_g : w_t]. Both are of `state_width`.
    """

    def __init__(
        self, vocabulary_size: int, region_dim: int, config: AdaptiveAttentionConfig
    ) -> None:
        super().__init__(vocabulary_size, region_dim, config)
        n = config.state_width
        self.to_language = nn.Linear(2 * n, 4 * n, bias=False)  # takes [ĉ_t : h¹_t]
        # All that h²_{t-1} is multiplied with, in one product: its part of W_x and of the top-down
        # gates, and the recurrence of the language LSTM.
        self.from_language = nn.Linear(n, 5 * n + 4 * n)
        initialise_recurrence(self.from_language)

    def start(self, memory: Memory, rows: int = 1) -> State:
        state = super().start(memory, rows)
        return {**state, "language_hidden": state["hidden"], "language_cell": state["cell"]}

    def _advance(
        self, entering: Tensor, state: State, memory: Memory
    ) -> tuple[State, Tensor, Tensor, Tensor]:
        """One step of both recurrences: the state, ĉ_t + h²_t, α and β_t."""
        n = self.config.state_width
        to_top_down, gates = self.from_language(state["language_hidden"]).split([5 * n, 4 * n], -1)
        hidden, cell, sentinel = self.top_down(
            entering + to_top_down, state["hidden"], state["cell"]
        )
        context, attention, beta = self.adaptive(hidden, sentinel, memory)
        gates = gates + self.to_language(torch.cat([context, hidden], -1))
        language_hidden, language_cell = lstm(gates, state["language_cell"])
        state = {
            "hidden": hidden,
            "cell": cell,
            "language_hidden": language_hidden,
            "language_cell": language_cell,
        }
        return state, context + language_hidden, attention, beta
