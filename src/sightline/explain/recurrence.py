"""Torch's recurrent cells and layers in plain operations, each of which has a rule and a gradient.

The same numbers come out as of torch's own, whose one step hides the gates from a mode.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.errors import NotApplicableError


def gru_cell(
    x: Tensor,
    hidden: Tensor,
    from_input: Tensor,
    from_hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> Tensor:
    """Cho et al. 2014, with the reset gate behind the product, as torch has it.

    >>> cell, x, hidden = torch.nn.GRUCell(3, 4), torch.ones(2, 3), torch.ones(2, 4)
    >>> torch.allclose(gru_cell(x, hidden, *cell.parameters()), cell(x, hidden), atol=1e-6)
    True
    """
    reset, update, new = functional.linear(x, from_input, input_bias).chunk(3, -1)
    sums = functional.linear(hidden, from_hidden, hidden_bias).chunk(3, -1)
    reset, update = torch.sigmoid(reset + sums[0]), torch.sigmoid(update + sums[1])
    new = torch.tanh(new + reset * sums[2])
    return (1 - update) * new + update * hidden


def lstm_cell(
    x: Tensor,
    state: Sequence[Tensor],
    from_input: Tensor,
    from_hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber 1997, with a forget gate: hidden state and cell.

    >>> cell, x, state = torch.nn.LSTMCell(3, 4), torch.ones(2, 3), (torch.ones(2, 4),) * 2
    >>> torch.allclose(lstm_cell(x, state, *cell.parameters())[0], cell(x, state)[0], atol=1e-6)
    True
    """
    hidden, cell = state
    sums = functional.linear(x, from_input, input_bias)
    i, f, g, o = (sums + functional.linear(hidden, from_hidden, hidden_bias)).chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def rnn_tanh_cell(
    x: Tensor,
    hidden: Tensor,
    from_input: Tensor,
    from_hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> Tensor:
    """Elman 1990."""
    sums = functional.linear(x, from_input, input_bias)
    return torch.tanh(sums + functional.linear(hidden, from_hidden, hidden_bias))


def lstm(x: Tensor, state: Sequence[Tensor], *options: Any) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.LSTM` over sequences: all outputs, the last hidden states and the last cells."""

    def step(x: Tensor, state: Any, *weights: Tensor) -> tuple[Tensor, Any]:
        hidden, cell = lstm_cell(x, state, *weights)
        return hidden, (hidden, cell)

    states = list(zip(*(part.unbind(0) for part in state), strict=True))
    outputs, last = _layers("lstm", step, x, states, *options)
    hidden, cells = zip(*last, strict=True)
    return outputs, torch.stack(hidden), torch.stack(cells)


def gru(x: Tensor, hidden: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    """`nn.GRU` over sequences: all outputs and the last hidden states."""
    return _of_one_state("gru", gru_cell, x, hidden, *options)


def rnn_tanh(x: Tensor, hidden: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    """`nn.RNN` over sequences: all outputs and the last hidden states."""
    return _of_one_state("rnn_tanh", rnn_tanh_cell, x, hidden, *options)


def _of_one_state(
    name: str, cell: Callable[..., Tensor], x: Tensor, hidden: Tensor, *options: Any
) -> tuple[Tensor, Tensor]:
    def step(x: Tensor, hidden: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        hidden = cell(x, hidden, *weights)
        return hidden, hidden

    outputs, last = _layers(name, step, x, list(hidden.unbind(0)), *options)
    return outputs, torch.stack(last)


def _layers(
    name: str,
    step: Callable[..., tuple[Tensor, Any]],
    x: Tensor,
    states: list[Any],
    *options: Any,
) -> tuple[Tensor, list[Any]]:
    """Layers, and both directions of each, one after another; options are those of torch."""
    if len(options) != 7 or isinstance(options[0], Tensor) or x.dim() != 3:
        raise NotApplicableError.no_rule(f"{name} of packed sequences")
    weights, bias, layers, dropout, training, bidirectional, batch_first = options
    directions, per_layer = 1 + bidirectional, 4 if bias else 2
    if len(weights) != layers * directions * per_layer:
        raise NotApplicableError.no_rule(f"{name} with projections")
    last = []
    axis = 1 if batch_first else 0
    for number in range(layers):
        outputs = []
        for direction in range(directions):
            which = number * directions + direction
            layer_weights = weights[which * per_layer : (which + 1) * per_layer]
            state, hidden = states[which], []
            steps = x.unbind(axis)
            for item in reversed(steps) if direction else steps:
                output, state = step(item, state, *layer_weights)
                hidden.append(output)
            outputs.append(torch.stack(hidden[::-1] if direction else hidden, axis))
            last.append(state)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and training and number + 1 < layers:
            x = functional.dropout(x, dropout)
    return x, last


PLAIN_RECURRENCE: dict[str, Callable[..., Any]] = {
    form.__name__: form for form in (gru_cell, lstm_cell, rnn_tanh_cell, lstm, gru, rnn_tanh)
}
