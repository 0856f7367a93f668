"""Layers that captioners share."""

from typing import Any

import torch
from torch import Tensor, nn


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


def additive_energy(keys: Tensor, query: Tensor, vector: Tensor) -> Tensor:
    """v · tanh(keys + query) `(B, K, L)` of keys `(B, L, A)`, queries `(B, K, A)` and v `(A,)`.

    The energies of additive attention (Bahdanau et al. 2014). What stands between, `(B, K, L, A)`,
    is the largest thing in a captioner. It is never stored: pieces that fit into the processor's
    cache are made, used and forgotten, and made again for the gradient, which is as fast as to
    fetch them from memory.

    >>> additive_energy(torch.zeros(1, 3, 2), torch.zeros(1, 5, 2), torch.ones(2)).shape
    torch.Size([1, 5, 3])
    """
    energy: Tensor = _AdditiveEnergy.apply(keys, query, vector)  # type: ignore[no-untyped-call]
    return energy


class _AdditiveEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys: Tensor, query: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(keys, query, vector)
        pieces = zip(*_pieces(keys, query), strict=True)
        return torch.cat([_squash(k, q) @ vector for k, q in pieces])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, query, vector = ctx.saved_tensors
        for_keys, for_query, for_vector = [], [], torch.zeros_like(vector)
        for k, q, g in zip(*_pieces(keys, query, gradient), strict=True):
            squashed = _squash(k, q)
            for_vector += g.flatten() @ squashed.flatten(0, 2)
            slope = squashed.square_().neg_().add_(1)  # d tanh = 1 - tanh²
            for_query.append((g[:, :, None] @ slope).squeeze(2))
            for_keys.append(slope.mul_(g[..., None]).sum(1))
        return torch.cat(for_keys) * vector, torch.cat(for_query) * vector, for_vector


def _squash(keys: Tensor, query: Tensor) -> Tensor:
    return (keys[:, None] + query[:, :, None]).tanh_()


def _pieces(*tensors: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    """Keys, queries and what goes with them, cut along the pictures to about a megabyte each."""
    keys, query = tensors[:2]
    pictures = max((1 << 18) // (query.shape[1] * keys[0].numel()), 1)
    return tuple(torch.split(tensor, pictures) for tensor in tensors)
