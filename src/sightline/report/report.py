"""A caption with its explanations: what pages, figures and JSON files show."""

from dataclasses import dataclass, field
from typing import Any

from PIL.Image import Image

from sightline.captions import Caption, Counterfactual
from sightline.explanation import Explanation

DEFAULT_METHODS = ("lrp", "grad_cam", "guided_grad_cam", "attention")
"""The methods of a report by default; occlusion takes as long as all of them together."""


@dataclass(frozen=True, eq=False)
class Report:
    """Why a caption says its words, and does not say others. `Captioner.report` makes it."""

    name: str  # of the picture
    picture: Image
    caption: Caption
    explanations: tuple[Explanation, ...]
    counterfactuals: tuple[Counterfactual, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)  # methods that do not apply, and why

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of its explanations, in their order."""
        return tuple(dict.fromkeys(why.method for why in self.explanations))

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
            "unsaid": [word.to_json() for word in self.counterfactuals],
            "explanations": explanations,
            "skipped": self.skipped,
        }
