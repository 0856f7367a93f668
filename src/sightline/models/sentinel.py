"""The visual sentinel, and attention that may choose it over the picture (paper 4, eq. 1-7).

Lu et al. 2017 brought both; paper 4's two captioners are made of them.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.models.interface import Memory
from sightline.models.layers import additive_energy, initialise_recurrence, lstm


class SentinelLSTM(nn.Module):
    """The top-down attention LSTM: at every word it also gives a sentinel s_t (eq. 1).

    Its input x_t arrives already multiplied, as `entering` `(B, K, 5n)`: first what enters the
    sentinel's gate (W_x x_t), then what enters the four gates of the LSTM.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        # W_h of eq. 1 and the recurrence of the LSTM in one product. The bias of the sentinel's
        # gate is not in eq. 1; the LSTM's gates, with which it is computed, have one.
        self.from_hidden = nn.Linear(width, 5 * width)
        initialise_recurrence(self.from_hidden)

    def forward(
        self, entering: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The next hidden state h_t and memory m_t, and the sentinel s_t, each `(B, K, n)`."""
        width = hidden.shape[-1]
        gate, gates = (entering + self.from_hidden(hidden)).split([width, 4 * width], -1)
        hidden, cell = lstm(gates, cell)
        return hidden, cell, torch.sigmoid(gate) * torch.tanh(cell)


class AdaptiveModule(nn.Module):
    """Attention over the regions V and the sentinel s_t, asked by h_t (eq. 2-7).

    Of the pictures' memory it takes `regions` V `(B, L, n)`, `keys` W_v V `(B, L, a)` and the
    `barrier` `(B, L)`.
    """

    def __init__(self, width: int, attention_width: int) -> None:
        super().__init__()
        self.key = nn.Linear(width, attention_width, bias=False)  # W_v
        self.query = nn.Linear(width, attention_width, bias=False)  # W_g
        self.sentinel_key = nn.Linear(width, attention_width, bias=False)  # W_s
        self.score = nn.Parameter(torch.empty(attention_width))  # w_a
        bound = attention_width**-0.5
        nn.init.uniform_(self.score, -bound, bound)

    def forward(
        self, hidden: Tensor, sentinel: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The context ĉ_t `(B, K, n)`, the attention α `(B, K, L)` and β_t `(B, K)`."""
        query = self.query(hidden)
        energy = additive_energy(memory["keys"], query, self.score)  # eq. 2
        energy = energy + memory["barrier"][:, None]
        sentinel_energy = torch.tanh(self.sentinel_key(sentinel) + query) @ self.score  # eq. 5
        attention = functional.softmax(energy, -1)  # eq. 3
        context = attention @ memory["regions"]  # eq. 4
        shares = functional.softmax(torch.cat([energy, sentinel_energy.unsqueeze(-1)], -1), -1)
        beta = shares[..., -1:]  # eq. 6
        return (1 - beta) * context + beta * sentinel, attention, beta.squeeze(-1)  # eq. 7
