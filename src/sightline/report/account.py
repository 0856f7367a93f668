"""A caption with all that explains it: what pages, figures and JSON files show."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL.Image import Image, Resampling

from sightline.captions import Caption, Unsaid
from sightline.errors import ConfigError
from sightline.explain.explanation import Explanation
from sightline.explain.questions import Asked
from sightline.pictures import open_picture
from sightline.progress import progress
from sightline.report.heatmaps import fit

if TYPE_CHECKING:
    from sightline.captioner import Captioner

METHODS = ("lrp", "grad_cam", "guided_grad_cam", "attention")
"""Explained by these if nothing else is asked for; occlusion takes as long as all of them."""

_SIDE = 1024  # pixels of the longer side of the picture that is explained and shown


@dataclass(frozen=True, eq=False)
class Account:
    """Why a caption says its words, and does not say others."""

    name: str  # of the picture
    picture: Image
    caption: Caption
    explanations: tuple[Explanation, ...]
    unsaid: tuple[Unsaid, ...] = ()

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
            "unsaid": [word.to_json() for word in self.unsaid],
            "explanations": explanations,
        }


def give_account(
    captioner: "Captioner",
    picture: Path | str,
    *,
    caption: str | None = None,
    words: Sequence[str] = ("all",),
    methods: Sequence[str] = METHODS,
    why_not: Sequence[tuple[str, int | None]] = (),
    show_progress: bool = False,
) -> Account:
    """Explain words of a caption by several methods.

    The caption is the captioner's own unless one is given. `words` are those that the caption says,
    wherever it says them, or "all"; `why_not` are words that it does not say, each with a place
    (from 0) or None, for where it is likeliest. Words have their support, if the captioner was
    fitted to tell it.

    >>> give_account(captioner, "photo.jpg", why_not=[("cat", None)])  # doctest: +SKIP
    Account(name='photo.jpg', …)
    """
    opened = captioner.open(picture)
    if caption is None:
        told = captioner.caption(opened, check=captioner.can_check)
    else:
        told = captioner.read(opened, caption)
        told = captioner.check(opened, told) if captioner.can_check else told
    places = _places(told, words)
    unsaid = [captioner.unsaid(opened, told, word, place) for word, place in why_not]
    asked: list[Asked] = [*places, *((other.place, other.word.text) for other in unsaid)]
    if not asked:
        raise ConfigError("there is no word to explain: the caption is empty, or none was named")
    shown = _open_to_show(picture)
    work = progress(methods, "explaining", total=len(methods), unit="method", show=show_progress)
    explanations = [
        why for method in work for why in captioner.explain(shown, told, words=asked, method=method)
    ]
    return Account(
        Path(picture).name,
        shown,
        dataclasses.replace(told, picture=shown),
        tuple(explanations),
        tuple(unsaid),
    )


def _open_to_show(picture: Path | str) -> Image:
    """Larger than captioners need, smaller than cameras take."""
    opened = open_picture(picture, reduced_to=_SIDE)
    size = fit(opened.width, opened.height, _SIDE)
    return opened if size == opened.size else opened.resize(size, Resampling.LANCZOS)


def _places(caption: Caption, words: Sequence[str]) -> list[int]:
    said = [word.text for word in caption.words]
    if "all" in words:
        return list(range(len(said)))
    for word in words:
        if word not in said:
            raise ConfigError(
                f"the caption '{caption}' does not say '{word}': ask for a word it says, or why it "
                "does not say this one"
            )
    return [place for place, word in enumerate(said) if word in words]
