"""Layers that captioners share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import handle_torch_function, has_torch_function


class Dropout(nn.Module):
    """Dropout, three times as fast on a CPU as torch's, which draws its bits one by one.

    >>> Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return x * torch.rand_like(x).ge_(self.p).mul_(1 / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}"


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """A model in training that drops nothing for a while.

    >>> model = nn.Sequential(Dropout(0.5)).train()
    >>> with without_dropout(model):
    ...     model(torch.ones(2))
    tensor([1., 1.])
    >>> model[0].training
    True
    """
    dropping = [
        module
        for module in model.modules()
        if isinstance(module, Dropout | nn.Dropout) and module.training
    ]
    for module in dropping:
        module.eval()
    try:
        yield
    finally:
        for module in dropping:
            module.train()


def unit_gate(x: Tensor) -> Tensor:
    """`x` at length one, where it only weighs something else: explanations take it as a gate.

    >>> unit_gate(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if has_torch_function((x,)):
        gate: Tensor = handle_torch_function(unit_gate, (x,), x)
        return gate
    return functional.normalize(x, 2, -1)


def additive_energy(keys: Tensor, query: Tensor, vector: Tensor, rectified: bool = False) -> Tensor:
    """v · tanh(keys + query) `(B, K, L)` of keys `(B, L, A)`, queries `(B, K, A)` and v `(A,)`.

    The energies of additive attention (Bahdanau et al. 2014); `rectified`, with max(0, ·) in the
    place of tanh. What stands between, `(B, K, L, A)`, is the largest thing in a captioner. It is
    never stored, but made again for the gradient. On a CPU it is made in pieces that fit into the
    cache, which is as fast as to fetch them from memory, and without taking a tanh of it
    (`_DividedEnergy`); on other devices, at once.

    >>> additive_energy(torch.zeros(1, 3, 2), torch.zeros(1, 5, 2), torch.ones(2)).shape
    torch.Size([1, 5, 3])
    """
    given = (keys, query, vector)
    energy: Tensor
    if has_torch_function(given):  # explanations take it in plain operations
        energy = handle_torch_function(additive_energy, given, *given, rectified=rectified)
    elif not rectified and _can_divide(keys, query):
        energy = _DividedEnergy.apply(*(x.float() for x in given))  # type: ignore[no-untyped-call]
        if not torch.is_autocast_enabled("cpu"):  # which takes what is wider
            energy = energy.to(keys.dtype)
    else:
        energy = _AdditiveEnergy.apply(*given, rectified)  # type: ignore[no-untyped-call]
    return energy


# Beyond 10, tanh is 1 in 32 bits. Of keys beyond 43 an exponential is infinite or loses its digits,
# which changes nothing as long as queries keep within 30.
_LARGEST_QUERY = 30.0


def _can_divide(keys: Tensor, query: Tensor) -> bool:
    if keys.device.type != "cpu" or keys.dtype not in (torch.float32, torch.bfloat16):
        return False
    return query.numel() > 0 and float(query.detach().abs().max()) <= _LARGEST_QUERY


class _DividedEnergy(torch.autograd.Function):
    """v · tanh(k + q) as Σv - 2 v · r, with r = 1 / (1 + exp(2k) exp(2q)), in 32 bits.

    The exponentials are those of keys and of queries, not of all their sums. The slope of tanh is
    4 r (1 - r). Four times as fast as by tanh, and a third faster with its gradient.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, query: Tensor, vector: Tensor) -> Tensor:
        keys, query = torch.exp(2 * keys), torch.exp(2 * query)
        ctx.save_for_backward(keys, query, vector)
        room, weights = _room(keys, query), -2 * vector
        with torch.autocast("cpu", enabled=False):
            parts = [_reciprocal(k, q, room) @ weights for k, q in _pieces(keys, query)]
        return torch.cat(parts).add_(vector.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, query, vector = ctx.saved_tensors
        for_keys, for_query, for_vector = [], [], torch.zeros_like(vector)
        room = _room(keys, query)
        for k, q, g in _pieces(keys, query, gradient):
            r = _reciprocal(k, q, room)
            for_vector += g.flatten() @ r.flatten(0, 2)
            slope = r.addcmul_(r, r, value=-1)
            for_query.append((g[:, :, None] @ slope).squeeze(2))
            for_keys.append(slope.mul_(g[..., None]).sum(1))
        vector = 4 * vector
        for_vector = gradient.sum() - 2 * for_vector
        return torch.cat(for_keys) * vector, torch.cat(for_query) * vector, for_vector


def _reciprocal(keys: Tensor, query: Tensor, room: Tensor) -> Tensor:
    """1 / (1 + keys * query) of a piece."""
    one = keys.new_ones(())
    sums = torch.addcmul(one, keys[:, None], query[:, :, None], out=room[: len(keys)])
    return sums.reciprocal_()


class _AdditiveEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys: Tensor, query: Tensor, vector: Tensor, rectified: bool) -> Tensor:
        ctx.save_for_backward(keys, query, vector)
        ctx.rectified = rectified
        room = _room(keys, query)
        pieces = _pieces(keys, query)
        return torch.cat([_squash(k, q, room, rectified) @ vector for k, q in pieces])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        keys, query, vector = ctx.saved_tensors
        for_keys, for_query, for_vector = [], [], torch.zeros_like(vector)
        room = _room(keys, query)
        for k, q, g in _pieces(keys, query, gradient):
            squashed = _squash(k, q, room, ctx.rectified)
            for_vector += g.flatten() @ squashed.flatten(0, 2)
            # d max(0, x) is 1 where it is more than 0; d tanh = 1 - tanh².
            slope = squashed.sign_() if ctx.rectified else squashed.square_().neg_().add_(1)
            for_query.append((g[:, :, None] @ slope).squeeze(2))
            for_keys.append(slope.mul_(g[..., None]).sum(1))
        return torch.cat(for_keys) * vector, torch.cat(for_query) * vector, for_vector, None


def _pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Keys, queries and what goes with them, cut along the pictures."""
    return zip(*(torch.split(tensor, _pictures(*tensors[:2])) for tensor in tensors), strict=True)


def _pictures(keys: Tensor, query: Tensor) -> int:
    """How many pictures make a piece: on a CPU, about a megabyte of them."""
    if keys.device.type != "cpu":
        return max(len(keys), 1)
    return max((1 << 18) // (query.shape[1] * keys[0].numel()), 1)


def _room(keys: Tensor, query: Tensor) -> Tensor:
    """Where all pieces are made, one after another: fresh memory would cost more than the tanh."""
    return keys.new_empty(_pictures(keys, query), query.shape[1], *keys.shape[1:])


def _squash(keys: Tensor, query: Tensor, room: Tensor, rectified: bool) -> Tensor:
    total = torch.add(keys[:, None], query[:, :, None], out=room[: len(keys)])
    return total.relu_() if rectified else total.tanh_()


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell `(..., n)`, from the sums of all that enters the gates.

    `gates` `(..., 4n)` holds, in this order, the input, forget and output gates and the proposal,
    before they are squashed: each captioner adds them up from parts, most of them computed for all
    words at once.

    >>> hidden, cell = lstm(torch.zeros(1, 8), torch.ones(1, 2))
    >>> cell
    tensor([[0.5000, 0.5000]])
    """
    i, f, o, g = gates.chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def initialise_recurrence(from_hidden: nn.Linear) -> None:
    """Start an LSTM whose hidden state `from_hidden` multiplies; its last outputs are the gates.

    >>> linear = nn.Linear(2, 8)
    >>> initialise_recurrence(linear)
    >>> linear.bias.tolist()
    [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    n = from_hidden.in_features
    nn.init.zeros_(from_hidden.bias)
    for gate in from_hidden.weight.data[-4 * n :].chunk(4):
        nn.init.orthogonal_(gate)
    # Remember by default. The papers' programs start the forget gate at zero; one trains sooner.
    nn.init.ones_(from_hidden.bias.data[-3 * n : -2 * n])


def masked_mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean `(B, D)` of the regions `(B, L, D)` that there are.

    >>> masked_mean(torch.tensor([[[2.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))
    tensor([[3.]])
    """
    visible = mask.unsqueeze(-1)
    return (vectors * visible).sum(1) / visible.sum(1)


def barrier(mask: Tensor, like: Tensor) -> Tensor:
    """What is added to energies `(B, L)` so that regions that are not there get no attention.

    >>> barrier(torch.tensor([[True, False]]), torch.zeros(()))
    tensor([[0., -inf]])
    """
    return like.new_zeros(mask.shape).masked_fill(~mask, float("-inf"))
