"""A caption with its explanations: what pages, figures and JSON files show."""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL.Image import Image

from sightline.captions import UNFAMILIAR, Caption, Counterfactual, UnknownWord
from sightline.errors import ConfigError
from sightline.explanation import Explanation

DEFAULT_METHODS = ("contrastive_lrp", "grad_cam", "guided_grad_cam", "attention")
"""The methods of a report by default; occlusion takes as long as all of them together."""
REPORT_SIDE = 1024  # pixels of the longer side of a report's picture: smaller than cameras take


@dataclass(frozen=True, eq=False)
class Report:
    """Why a caption says its words, and does not say others. `Captioner.report` makes it."""

    name: str  # of the picture
    picture: Image
    caption: Caption
    explanations: tuple[Explanation, ...]
    counterfactuals: tuple[Counterfactual, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)  # methods that do not apply, and why
    readers_own: bool = False  # the caption is not the captioner's, but was given
    # Words of a given caption, or asked about, that the captioner does not know. In the caption
    # they have no explanation, and the captioner read `<unknown>` in their place.
    unknown: tuple[UnknownWord, ...] = ()
    # Every word that the captioner knows: the position where it was most likely (from 0), and its
    # log-probability there. So a page can answer "why not …?" for any word.
    likeliest: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False)
    pending: tuple[str, ...] = ()  # methods that are still to come, if the report is growing

    def with_explanations(
        self, explanations: Sequence[Explanation], pending: tuple[str, ...]
    ) -> "Report":
        """The report, grown by a method."""
        grown = (*self.explanations, *explanations)
        return dataclasses.replace(self, explanations=grown, pending=pending)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of its explanations, in their order."""
        return tuple(dict.fromkeys(why.method for why in self.explanations))

    @property
    def unfamiliar(self) -> str | None:
        """A sentence, if the picture is unlike those that the captioner knows."""
        return UNFAMILIAR if self.caption.unfamiliar else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; regions are in the order of the caption's boxes."""
        explanations = [why.to_json() for why in self.explanations]
        for explanation in explanations:
            del explanation["boxes"]  # the caption's: once is enough
        return {
            "picture": {
                "name": self.name,
                "width": self.picture.width,
                "height": self.picture.height,
            },
            "caption": self.caption.to_json(),
            "readers_own": self.readers_own,
            "unsaid": [word.to_json() for word in self.counterfactuals],
            "unknown": [word.to_json() for word in self.unknown],
            "explanations": explanations,
            "skipped": self.skipped,
        }


def parse_why_not(text: str) -> tuple[str, int | None]:
    """A word and its position, which users count from 1.

    >>> parse_why_not("dog"), parse_why_not("Dog@3")
    (('dog', None), ('dog', 2))
    """
    match = re.fullmatch(r"([^@]+)(?:@([1-9]\d{0,3}))?", text)
    if match is None:
        raise ConfigError(f"why not {text}: give a word, or a word and its position as in dog@3")
    word, place = match.groups()
    return word.strip().lower(), None if place is None else int(place) - 1
