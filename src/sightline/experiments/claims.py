"""What a paper claims, and how the numbers of an experiment decide whether it holds here.

An experiment states its claims where it is defined. `sightline reproduction` puts the numbers of
finished experiments to all of them, and makes one page of the answers.
"""

from collections.abc import Callable, Iterable, Sequence
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


FEWEST_SEEDS = 3
"""Runs of a captioner below which it is not called better than another: seeds differ, too."""


def on_several_runs(answer: Answer, pairs: Iterable[str]) -> Answer:
    """The answer to a claim about captioners, where `pairs` of runs, "one - other", are enough.

    >>> on_several_runs(decide(True, "+3."), ["a-0 - b-0"])
    Answer(verdict='not tested', sentence='1 of at least 3 runs of each were compared. +3.')
    """
    sides = list(zip(*(pair.split(" - ") for pair in pairs), strict=True))
    fewest = min((len(set(side)) for side in sides), default=FEWEST_SEEDS)
    if fewest >= FEWEST_SEEDS or answer.verdict == "not tested":
        return answer
    few = f"{fewest} of at least {FEWEST_SEEDS} runs of each were compared."
    return untested(f"{few} {answer.sentence}")


def decide(holds: bool, sentence: str) -> Answer:
    """
    >>> decide(False, "No.").verdict
    'not reproduced'
    """
    return Answer("reproduced" if holds else "not reproduced", sentence)


def decide_all(parts: Sequence[tuple[bool, str]], nothing: str) -> Answer:
    """The answer to a claim that must hold in every part, such as of every run.

    `nothing` is said where there is no part.

    >>> decide_all([(True, "a: 3 of 3"), (False, "b: 1 of 3")], "No run.")
    Answer(verdict='not reproduced', sentence='a: 3 of 3; b: 1 of 3.')
    """
    if not parts:
        return untested(nothing)
    return decide(all(holds for holds, _ in parts), "; ".join(words for _, words in parts) + ".")


def untested(reason: str) -> Answer:
    """The answer where a claim was not put to the test, and why not."""
    return Answer("not tested", reason)
