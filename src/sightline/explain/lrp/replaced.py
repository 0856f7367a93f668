"""Tensors that were changed in place, which a rule made anew instead."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


class Replaced:
    """Remembers which numbers are out of date, and so which tensors are: views of them, too.

    >>> replaced, x = Replaced(), torch.zeros(2, 4)
    >>> replaced.add(x[:, :2])
    >>> [replaced.holds(part) for part in (x, x[:, 1:], x[:, 2:], torch.zeros(2))]
    [True, True, False, False]
    """

    def __init__(self) -> None:
        # By where a storage is: one of its tensors, so that it stays there, and its old numbers.
        self._storages: dict[int, tuple[Tensor, Tensor]] = {}

    def add(self, x: Tensor) -> None:
        storage = x.untyped_storage()
        if storage.data_ptr() not in self._storages:
            count = storage.nbytes() // x.element_size()
            nothing = torch.zeros(count, dtype=torch.bool, device=x.device)
            self._storages[storage.data_ptr()] = x, nothing
        _places(x, self._storages[storage.data_ptr()][1]).fill_(True)

    def holds(self, part: Any) -> bool:
        """Whether any number of a tensor is out of date."""
        if not self._storages or not isinstance(part, Tensor) or part.layout != torch.strided:
            return False
        x, old = self._storages.get(part.untyped_storage().data_ptr(), (None, None))
        if x is None or old is None:
            return False
        return part.element_size() != x.element_size() or bool(_places(part, old).any())


def _places(x: Tensor, old: Tensor) -> Tensor:
    return old.as_strided(x.shape, x.stride(), x.storage_offset())


def out_of_place(name: str) -> Callable[..., Any] | None:
    """What makes a new tensor as an operation in place changes the old one, if there is such.

    >>> out_of_place("add_") is torch.Tensor.add, out_of_place("add"), out_of_place("copy_")
    (True, None, None)
    """
    if not name.endswith("_") or name.startswith("_"):
        return None
    plain = name.removesuffix("_")
    found = getattr(torch.Tensor, plain, None) or getattr(functional, plain, None)
    return found if callable(found) else None
