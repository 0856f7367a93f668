"""What a paper claims, and how the numbers of an experiment decide whether it holds here.

An experiment states its claims where it is defined. `sightline reproduction` puts the numbers of
finished experiments to all of them, and makes one page of the answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["reproduced", "not reproduced", "not tested"]


@dataclass(frozen=True)
class Answer:
    """What our numbers say to a claim, in one sentence with the number and its interval."""

    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper; `test` answers it from an experiment's `data.json`."""

    place: str  # in the paper, such as "figure 2"
    statement: str  # what the paper says, in one sentence
    test: Callable[[dict[str, Any]], Answer]


def decide(holds: bool, sentence: str) -> Answer:
    """
    >>> decide(False, "No.").verdict
    'not reproduced'
    """
    return Answer("reproduced" if holds else "not reproduced", sentence)


def untested(reason: str) -> Answer:
    """The answer where a claim was not put to the test, and why not."""
    return Answer("not tested", reason)
