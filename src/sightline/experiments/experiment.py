"""What an experiment is: pieces of work whose records are kept, and what follows from them all."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline import kept_records
from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.experiments.claims import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = kept_records.Record
"""What one piece of work measured, as plain JSON."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A captioner under study, and the pictures it is studied on."""

    name: str  # of its run, unique in an experiment
    model: str
    images: tuple[CaptionedImage, ...]
    load: Callable[[], Captioner]
    budget: str = ""  # what it was trained on and for how long, in words
    mask: float | None = None  # the mean mask at the end of its training, if it has alignment

    @functools.cached_property
    def captioner(self) -> Captioner:
        """Loaded when it is needed first: a resumed experiment may not need it any more."""
        return self.load()


@dataclass(frozen=True)
class Arm:
    """A recipe that an experiment trains with several seeds, to be compared with other recipes."""

    name: str  # unique in an experiment
    recipe: str  # a shipped one by its name, or a file
    overrides: tuple[str, ...] = ()  # as `sightline train` takes them
    seeds: int = 3  # 0, 1, 2 …
    after: str | None = None  # the arm whose run of the same seed it starts from
    trains: bool = True  # or what the recipe starts from is evaluated as it is


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
    files: dict[str, Any] = field(default_factory=dict)  # further files of JSON, by name


def no_tasks(subjects: Sequence[Subject], options: Any) -> Iterator[Task]:
    """Of an experiment that only trains."""
    return iter(())


@dataclass(frozen=True)
class Experiment:
    """A table or a figure, how to make it, and the claims that it puts to the test.

    `tasks` lists the work on some subjects, under `options`; it must be cheap, since a resumed
    experiment lists it again. An experiment that trains gives `arms` instead, and gets one record
    for each arm and seed (`experiments/training_tasks.py`). `conclude` turns the records, in the
    order of the tasks, into findings. `open` is for experiments whose subjects are no
    training runs: it makes a subject, or anything with a name and a budget, of a path.
    """

    name: str  # as the command and the registry call it: paper0-figure2
    question: str  # what it answers, in one line
    options: type[Any]  # a frozen dataclass with defaults
    tasks: Callable[[Sequence[Any], Any], Iterator[Task]]
    conclude: Callable[[Sequence[Record], Any], Findings]
    claims: tuple[Claim, ...] = ()
    arms: Callable[[Any], Sequence[Arm]] | None = None
    open: Callable[[Path], Any] | None = None
