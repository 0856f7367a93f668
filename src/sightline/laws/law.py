"""A law: a sentence, and what finds out whether it holds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from sightline.errors import SightlineError

Case = TypeVar("Case")


class LawBroken(SightlineError):
    """Something that must hold does not; the message says where, and by how much."""


@dataclass(frozen=True)
class Law(Generic[Case]):
    """A sentence that holds of a case, or `check` raises; a text that it returns is a remark."""

    sentence: str
    check: Callable[[Case], str | None]


@dataclass(frozen=True)
class Verdict:
    """What came of a law: whether it holds, and a line of why not, or a remark."""

    kind: str
    subject: str
    law: str
    holds: bool
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(
    kind: str, subject: str, laws: Sequence[Law[Case]], make: Callable[[], Case]
) -> list[Verdict]:
    """Run laws on something fresh for each of them; whatever is raised is a verdict.

    >>> fair = Law("it is even", lambda number: None if number % 2 == 0 else require(False, "odd"))
    >>> [(verdict.holds, verdict.why) for verdict in judge("number", "3", [fair], lambda: 3)]
    [(False, 'odd')]
    """
    verdicts = []
    for law in laws:
        holds, why = False, ""
        with torch.random.fork_rng(devices=[]):
            try:
                why, holds = law.check(make()) or "", True
            except SightlineError as error:
                why = str(error)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
        verdicts.append(Verdict(kind, subject, law.sentence, holds, " ".join(why.split())[:300]))
    return verdicts


def require(condition: Any, message: str) -> None:
    """Raise what is broken, unless the condition holds."""
    if not condition:
        raise LawBroken(message)


def require_shape(tensor: Any, shape: Sequence[int], what: str) -> None:
    """Raise, unless this is a tensor of that shape."""
    require(isinstance(tensor, Tensor), f"{what}: is {type(tensor).__name__}, not a tensor")
    require(
        tuple(tensor.shape) == tuple(shape),
        f"{what}: has shape {tuple(tensor.shape)}, not {tuple(shape)}",
    )


def require_same(actual: Tensor, expected: Tensor, what: str, tolerance: float = 1e-10) -> None:
    """Raise, unless two tensors have the same numbers, up to rounding."""
    require_shape(actual, expected.shape, what)
    difference = (
        (actual - expected).abs().nan_to_num(float("inf")).max().item() if actual.numel() else 0.0
    )
    require(difference <= tolerance, f"{what}: differs by {difference:.2g}")
