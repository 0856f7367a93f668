"""What the answers say: wins, ties and losses, agreement, and who did not pay attention."""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.blind.answers import Rating
from sightline.blind.study import Check, Study

PASSED = 0.75  # of the attention checks, so that a rater's answers count


@dataclass(frozen=True)
class Attention:
    """How a rater answered the checks: questions with a known answer, and how many were right."""

    asked: int
    right: int

    def passed(self, least: float = PASSED) -> bool:
        """Whether enough were right; without checks nobody fails."""
        return self.right >= least * self.asked


@dataclass(frozen=True)
class Verdict:
    """A rater's answer about a pair, from the side of the first system: +1 win, 0 tie, -1 loss."""

    rater: str
    picture: int  # the number of the pair; identical captions follow the last pair
    question: str
    outcome: int


def attention(study: Study, ratings: Sequence[Rating]) -> dict[str, Attention]:
    """How each rater did in the checks."""
    counts = {rater.name: [0, 0] for rater in study.raters}
    for rating in ratings:
        check = rating.shown.of
        if isinstance(check, Check) and rating.question in check.questions:
            counts[rating.rater][0] += 1
            counts[rating.rater][1] += rating.preferred == 0
    return {rater: Attention(asked, right) for rater, (asked, right) in counts.items()}


def verdicts(study: Study, ratings: Sequence[Rating], least: float = PASSED) -> list[Verdict]:
    """What attentive raters say of the first system against the second.

    A picture of which both systems say the same is a tie for every rater who answered at all.
    """
    attentive = {name for name, checks in attention(study, ratings).items() if checks.passed(least)}
    counted = [r for r in ratings if r.rater in attentive and not r.is_check]
    given = [
        Verdict(
            rating.rater,
            rating.shown.number,
            rating.question,
            {None: 0, 0: 1, 1: -1}[rating.preferred],
        )
        for rating in counted
    ]
    raters = dict.fromkeys(rating.rater for rating in counted)
    ties = [
        Verdict(rater, len(study.pairs) + number, question.name, 0)
        for number in range(len(study.identical))
        for rater in raters
        for question in study.questions
    ]
    return given + ties


def by_picture(study: Study, verdicts: Sequence[Verdict], question: str) -> list[list[int]]:
    """The outcomes of each pair on one question: the units of an agreement.

    Nobody was asked about identical captions, so nobody agreed about them.
    """
    units: dict[int, list[int]] = {}
    for verdict in verdicts:
        if verdict.question == question and verdict.picture < len(study.pairs):
            units.setdefault(verdict.picture, []).append(verdict.outcome)
    return [units[picture] for picture in sorted(units)]
