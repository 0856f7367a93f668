"""What a rater is shown: which pairs, in which order, which caption on which side."""

import random
from dataclasses import dataclass
from typing import Literal

from sightline.blind.study import Check, Pair, Rater, Study

Choice = Literal["left", "right", "tie"]
CHOICES: tuple[Choice, ...] = ("left", "right", "tie")


@dataclass(frozen=True)
class Shown:
    """A pair or a check as one rater sees it; `flipped`: its second caption is on the left."""

    of: Pair | Check
    number: int  # of the pair or the check, in the study
    flipped: bool

    @property
    def sides(self) -> tuple[str, str]:
        """The captions on the left and on the right."""
        first, second = self.of.captions
        return (second, first) if self.flipped else (first, second)

    def chosen(self, choice: Choice) -> int | None:
        """The number of the caption, in the study, that a choice means; None: neither."""
        return None if choice == "tie" else int((choice == "right") != self.flipped)


def sheet(study: Study, rater: Rater) -> list[Shown]:
    """The rater's pairs and checks, in order: always the same, and another for each rater.

    Each system is on the left in half of the pairs. Nobody can tell sides or order from anything
    but the study's secret seed.
    """
    shuffled = random.Random(f"{study.seed} {rater.token}")
    numbers = _assigned(study, rater)
    shuffled.shuffle(numbers)
    shown: list[Shown] = []
    for kind, chosen in ((study.pairs, numbers), (study.checks, list(range(len(study.checks))))):
        flips = [bool(place % 2) for place in range(len(chosen))]
        shuffled.shuffle(flips)
        shown += [
            Shown(kind[number], number, flip) for number, flip in zip(chosen, flips, strict=True)
        ]
    shuffled.shuffle(shown)
    return shown


def _assigned(study: Study, rater: Rater) -> list[int]:
    """The pairs that are this rater's: each pair has `study.each` raters, each rater as many."""
    raters, pairs = len(study.raters), list(range(len(study.pairs)))
    each = min(study.each or raters, raters)
    random.Random(study.seed).shuffle(pairs)
    place = study.raters.index(rater)
    return [pair for number, pair in enumerate(pairs) if (place - number * each) % raters < each]
