"""What an experiment is: pieces of work whose records are kept, and what follows from them all."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
"""What one piece of work measured, as plain JSON."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A captioner under study, and the pictures it is studied on."""

    name: str  # of its run, unique in an experiment
    model: str
    images: tuple[CaptionedImage, ...]
    load: Callable[[], Captioner]

    @functools.cached_property
    def captioner(self) -> Captioner:
        """Loaded when it is needed first: a resumed experiment may not need it any more."""
        return self.load()


@dataclass(frozen=True)
class Task:
    """A piece of work: a picture, or a run of some seed. What it measured is never lost."""

    key: str  # unique in an experiment, and the same when it is resumed
    measure: Callable[[], Record]


@dataclass(frozen=True, eq=False)
class Findings:
    """What all records together say."""

    table: str  # Markdown
    figure: "Figure"
    data: dict[str, Any]  # plain JSON: every number of the table and the figure


@dataclass(frozen=True)
class Experiment:
    """A table or a figure, and how to make it.

    `tasks` lists the work on some subjects, under `options`; it must be cheap, since a resumed
    experiment lists it again. `conclude` turns the records, in the order of the tasks, into
    findings.
    """

    question: str  # what it answers, in one line
    options: type[Any]  # a frozen dataclass with defaults
    tasks: Callable[[Sequence[Subject], Any], Iterator[Task]]
    conclude: Callable[[Sequence[Record], Any], Findings]
