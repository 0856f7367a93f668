"""A blind study: pairs of captions, questions and raters, as a folder.

`study.json` holds everything, with which system said what: it is for whoever runs the study.
`pictures/` holds copies under neutral names. `answers.sqlite` is what raters say (`answers.py`).
"""

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from sightline.config import Range, from_dict, to_dict
from sightline.errors import ConfigError, DataError
from sightline.files import CONFIG_BYTES, atomic_write
from sightline.parsing import read_json

STUDY = "study.json"
PICTURES = "pictures"
_TOKEN_BYTES = 16  # 128 random bits: nobody guesses the link of another rater
_MOST = 40 * CONFIG_BYTES
_PICTURE = re.compile(r"[0-9]{1,9}\.jpg")


@dataclass(frozen=True)
class Question:
    """What raters are asked about each pair."""

    name: Annotated[str, Range(1, 60)]
    text: Annotated[str, Range(1, 500)]


# Paper 0, section 5.6, after Huang et al. (2019).
QUESTIONS = (
    Question("naturalness", "Which caption is better English: more fluent and grammatical?"),
    Question("relevance", "Which caption fits this picture better?"),
    Question("richness", "Which caption tells more of what matters in the picture?"),
)


@dataclass(frozen=True)
class Pair:
    """A picture with the captions of both systems, in the systems' order."""

    picture: Annotated[str, Range(1, 255)]  # the copy, in `pictures/`
    name: str  # what the picture was called
    captions: tuple[str, str]


@dataclass(frozen=True)
class Check:
    """A pair with a known answer: on these questions the first caption must be chosen."""

    picture: Annotated[str, Range(1, 255)]
    captions: tuple[str, str]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Rater:
    """Someone who is asked, with a link of their own."""

    name: Annotated[str, Range(1, 60)]
    token: Annotated[str, Range(16, 64)]


@dataclass(frozen=True)
class Study:
    """What is compared, how, and by whom.

    `identical` are pictures of which both systems say the same: nobody is asked about them, and
    they count as ties. `each` is how many raters see a pair; None: all of them. `seed` is secret:
    order and sides follow from it.

    >>> Study.load("study").systems  # doctest: +SKIP
    ('transformer', 'aligned_transformer')
    """

    systems: tuple[str, str]
    questions: tuple[Question, ...]
    pairs: tuple[Pair, ...]
    checks: tuple[Check, ...]
    raters: tuple[Rater, ...]
    seed: Annotated[str, Range(16, 64)]
    identical: tuple[str, ...] = ()
    each: Annotated[int, Range(1)] | None = None
    format: Literal[1] = 1

    def __post_init__(self) -> None:
        for what, names in (
            ("systems", self.systems),
            ("questions", [question.name for question in self.questions]),
            ("raters", [rater.name for rater in self.raters]),
        ):
            if len(set(names)) < len(names):
                raise ConfigError(f"two {what} are called alike: {', '.join(names)}")
        for name in [p.picture for p in self.pairs] + [c.picture for c in self.checks]:
            if not _PICTURE.fullmatch(name):
                raise ConfigError(f"'{name}' is not the name of a picture in a study")
        if not self.questions or not self.raters:
            raise ConfigError("a study needs at least one question and one rater")

    @classmethod
    def load(cls, folder: Path | str) -> "Study":
        """The study in a folder."""
        path = Path(folder) / STUDY
        if not path.is_file():
            raise DataError(f"{folder}: is not a study; sightline compare-blind makes one")
        try:
            return from_dict(cls, read_json(path, _MOST, DataError), str(path), error=DataError)
        except ConfigError as error:  # of the whole
            raise DataError(f"{path}: {error}") from None

    def save(self, folder: Path) -> None:
        """Write `study.json`, readable by its owner alone: it says which system is which."""
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / STUDY) as file:
            json.dump(to_dict(self), file, ensure_ascii=False, indent=1)
            file.write("\n")
        (folder / STUDY).chmod(0o600)

    def rater(self, token: str) -> Rater | None:
        """Whose link it is; None: nobody's. Takes as long for a near miss as for any other."""
        found = None
        for rater in self.raters:
            if secrets.compare_digest(rater.token.encode(), token.encode("utf-8", "replace")):
                found = rater
        return found


def new_raters(names: Sequence[str]) -> tuple[Rater, ...]:
    """Raters with new links.

    >>> [rater.name for rater in new_raters(["Ann", "Ben"])]
    ['Ann', 'Ben']
    """
    return tuple(Rater(name, secrets.token_urlsafe(_TOKEN_BYTES)) for name in names)
