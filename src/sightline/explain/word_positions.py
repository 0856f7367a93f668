"""Which word of a caption each looked-up vector belongs to, however a captioner takes its words."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# What picks, joins or reshapes word ids without changing any.
_MOVES = {
    *("__getitem__", "select", "narrow", "unbind", "split", "chunk", "cat", "stack", "repeat"),
    *("reshape", "view", "view_as", "flatten", "unflatten", "squeeze", "unsqueeze", "expand"),
    *("transpose", "permute", "movedim", "contiguous", "clone", "detach", "to", "long", "int"),
}


class WordPositions:
    """Follows the word ids `(B, K, T)` of captions through the operations of a captioner.

    Every tensor that is made of them has a twin, made by the same operations, of the places that
    its ids had at first. So it does not matter whether a captioner looks up all words at once, one
    step at a time, or all words so far again and again.

    >>> words, tokens = WordPositions(), torch.tensor([[[7, 8, 9]]])
    >>> words.follow(tokens)
    >>> step = words.move("__getitem__", torch.Tensor.__getitem__, (tokens, (..., 2)), {})
    >>> step, words.find(step)
    (tensor([[9]]), tensor([[2]]))
    """

    def __init__(self) -> None:
        # Tensors by their id, and held, so that it stays theirs.
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}

    def follow(self, tokens: Tensor) -> None:
        """Begin with these words: place n is the nth number of `tokens`."""
        self._keep(tokens, torch.arange(tokens.numel(), device=tokens.device).view_as(tokens))

    def find(self, tensor: Any) -> Tensor | None:
        """The places of a tensor of word ids, -1 for none; None for any other tensor."""
        held = self._twins.get(id(tensor))
        return None if held is None else held[1]

    def translate(self, ids: Tensor, places: Tensor) -> None:
        """These ids were looked up for words at `places`: one for each, or a row of several."""
        trailing = (1,) * (ids.dim() - places.dim())
        self._keep(ids, places.view(*places.shape, *trailing).expand_as(ids))

    def concerns(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether an operation moves words."""
        if not self._twins or not args or not (name in _MOVES or name == "unique"):
            return False
        parts = args[0] if isinstance(args[0], list | tuple) else args[:1]
        return any(id(part) in self._twins for part in parts)

    def move(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the operation gives, with the places that go with it."""
        if name == "unique":
            return self._apart(function, args, kwargs)
        first, *rest = args
        twin = [self._twin(part) for part in first] if isinstance(first, list | tuple) else None
        output = function(first, *rest, **kwargs)
        places = function(self._twin(first) if twin is None else twin, *rest, **kwargs)
        if isinstance(output, Tensor):
            self._keep(output, places)
        else:
            for part, place in zip(output, places, strict=True):
                self._keep(part, place)
        return output

    def _apart(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """`unique` spares looking a word up twice; here each has a gradient of its own."""
        if not kwargs.get("return_inverse") or kwargs.get("return_counts") or kwargs.get("dim"):
            return function(*args, **kwargs)
        tokens = args[0]
        every = tokens.flatten()
        self._keep(every, self._twin(tokens).flatten())
        return every, torch.arange(len(every), device=tokens.device).view_as(tokens)

    def _twin(self, tensor: Tensor) -> Tensor:
        places = self.find(tensor)
        return torch.full_like(tensor, -1, dtype=torch.long) if places is None else places

    def _keep(self, tensor: Tensor, places: Tensor) -> None:
        self._twins[id(tensor)] = tensor, places
