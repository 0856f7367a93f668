"""What a paper claims, and how the numbers of an experiment decide whether it holds here.

An experiment states its claims where it is defined. `sightline reproduction` puts the numbers of
finished experiments to all of them, and makes one page of the answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sightline.experiments.estimate import Estimate

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


FEWEST_PICTURES = 20
"""Pictures behind a gain below which it decides nothing: their intervals are too narrow."""


def judge(
    gains: Sequence[Estimate], sentence: str, claimed: float = 0.0, drawn: str = "Pictures"
) -> Answer:
    """The answer to a claim that something is gained, in all these respects: the one rule for all.

    A gain is there if its whole interval is above nothing, and is not there if all of it is at most
    what is `claimed`. One that leaves both possible does not tell, such as one that touches nothing
    from above: what was `drawn` differs too much.

    >>> [judge([Estimate(0.2, low, 0.4, 9)], "").verdict for low in (0.1, 0.0)]
    ['reproduced', 'not tested']
    >>> judge([Estimate(-0.1, -0.2, 0.0, 9)], "").verdict
    'not reproduced'
    """
    fewest = min((gain.pictures for gain in gains if gain.pictures is not None), default=None)
    if fewest is not None and fewest < FEWEST_PICTURES:
        few = f"{fewest} of at least {FEWEST_PICTURES} pictures have what is compared."
        return untested(f"{few} {sentence}")
    if any(gain.high <= claimed and not gain.above(0) for gain in gains):
        return decide(False, sentence)
    if not all(gain.above(0) for gain in gains):
        return untested(f"{drawn} differ too much to tell. {sentence}")
    return decide(True, sentence)


FEWEST_SEEDS = 3
"""Runs of a captioner below which it is not called better than another: seeds differ, too."""


def tell(gains: Sequence[Estimate], sentence: str, claimed: float = 0.0) -> Answer:
    """The same where runs are compared: a few of them decide nothing.

    >>> tell([Estimate(0.1, -0.4, 0.6, 3)], "+10 points.", claimed=0.05).verdict
    'not tested'
    """
    fewest = min(gain.count for gain in gains)
    if fewest < FEWEST_SEEDS:
        few = f"{fewest} of at least {FEWEST_SEEDS} runs of each were compared."
        return untested(f"{few} {sentence}")
    return judge(gains, sentence, claimed, "Seeds")


def decide(holds: bool, sentence: str) -> Answer:
    """
    >>> decide(False, "No.").verdict
    'not reproduced'
    """
    return Answer("reproduced" if holds else "not reproduced", sentence)


def decide_all(parts: Sequence[tuple[Estimate, str]], nothing: str) -> Answer:
    """The answer to a claim of a gain that must be there in every part, such as of every run.

    `nothing` is said where there is no part.

    >>> gain = Estimate(0.2, 0.1, 0.3, 9)
    >>> decide_all([(gain, "a: 3 of 3"), (-gain, "b: 1 of 3")], "No run.")
    Answer(verdict='not reproduced', sentence='a: 3 of 3; b: 1 of 3.')
    """
    if not parts:
        return untested(nothing)
    return judge([gain for gain, _ in parts], "; ".join(words for _, words in parts) + ".")


def untested(reason: str) -> Answer:
    """The answer where a claim was not put to the test, and why not."""
    return Answer("not tested", reason)


def not_kept(what: str) -> Answer:
    """The answer where a stored result is older than the claim and lacks what it asks for.

    >>> not_kept("masks").sentence
    'The stored result lacks masks: run the experiment again.'
    """
    return untested(f"The stored result lacks {what}: run the experiment again.")
