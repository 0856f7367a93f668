"""What raters said. Nothing is changed or deleted: a later answer to a question counts instead."""

import csv
import io
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from sightline.blind.sheet import CHOICES, Choice, Shown, sheet
from sightline.blind.study import Check, Pair, Rater, Study
from sightline.config import Natural, Range, from_dict
from sightline.database import Database
from sightline.errors import ConfigError, DataError

ANSWERS = "answers.sqlite"
_TABLES = """
CREATE TABLE answers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rater TEXT NOT NULL,
    place INTEGER NOT NULL,  -- in the rater's sheet
    question TEXT NOT NULL,
    choice TEXT NOT NULL CHECK (choice IN ('left', 'right', 'tie')),
    seconds REAL,            -- from when the pair was shown
    at REAL NOT NULL
);
CREATE INDEX of_rater ON answers (rater, place)
"""


@dataclass(frozen=True)
class Rating:
    """A rater's answer to one question about a pair or a check.

    `preferred` is the number of the preferred caption in the study: 0 or 1 for the systems of a
    pair; None is a tie.
    """

    rater: str
    shown: Shown
    question: str
    choice: Choice
    seconds: float | None
    at: float

    @property
    def preferred(self) -> int | None:
        return self.shown.chosen(self.choice)

    @property
    def is_check(self) -> bool:
        return isinstance(self.shown.of, Check)


@dataclass(frozen=True)
class _Answer:
    """A row of the file."""

    rater: str
    place: Natural
    question: str
    choice: Choice
    seconds: float | None
    at: Annotated[float, Range(0, 1e11)]  # seconds since 1970


class Answers:
    """The answers to a study, in its folder; a context manager.

    >>> with Answers("study") as answers:  # doctest: +SKIP
    ...     answers.give(rater, 0, {"relevance": "left"})
    """

    def __init__(self, folder: Path | str, *, read_only: bool = False) -> None:
        folder = Path(folder)
        self.study = Study.load(folder)
        self.sheets = {rater.name: sheet(self.study, rater) for rater in self.study.raters}
        self._database: Database | None = None
        if not read_only or (folder / ANSWERS).exists():  # else nobody has answered yet
            self._database = Database(folder / ANSWERS, _TABLES, read_only=read_only)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def give(
        self, rater: Rater, place: int, choices: Mapping[str, str], seconds: float | None = None
    ) -> None:
        """Save a rater's answers about one pair: on disk when this returns."""
        questions = {question.name for question in self.study.questions}
        if not 0 <= place < len(self.sheets[rater.name]):
            raise ConfigError(f"there is no pair {place}")
        if choices.keys() != questions or not set(choices.values()) <= set(CHOICES):
            raise ConfigError(
                f"an answer is one of {', '.join(CHOICES)} to each of {', '.join(questions)}"
            )
        assert self._database is not None
        with self._database.writing() as write:
            for question, choice in choices.items():
                write(
                    "INSERT INTO answers (rater, place, question, choice, seconds, at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (rater.name, place, question, choice, seconds, time.time()),
                )

    def given(self, rater: Rater) -> dict[int, dict[str, Choice]]:
        """A rater's answers by place and question."""
        by_place: dict[int, dict[str, Choice]] = {}
        for answer in self._answers("WHERE rater = ?", (rater.name,)):
            by_place.setdefault(answer.place, {})[answer.question] = answer.choice
        return by_place

    def ratings(self) -> list[Rating]:
        """The answer that counts of every rater to every question, in the order of the sheets."""
        last: dict[tuple[str, int, str], Rating] = {}
        for given in self._answers():
            key = (given.rater, given.place, given.question)
            shown = self.sheets[given.rater][given.place]
            last[key] = Rating(
                given.rater, shown, given.question, given.choice, given.seconds, given.at
            )
        return [last[key] for key in sorted(last, key=lambda key: key[:2])]

    def _answers(self, where: str = "", values: tuple[Any, ...] = ()) -> Iterator["_Answer"]:
        if self._database is None:
            return
        names = [field.name for field in fields(_Answer)]
        query = f"SELECT {', '.join(names)} FROM answers {where} ORDER BY id"
        file = str(self._database.path)
        for row in self._database.rows(query, values):
            given = from_dict(_Answer, dict(zip(names, row, strict=True)), file, error=DataError)
            if given.place >= len(self.sheets.get(given.rater, ())):
                raise DataError(f"{file}: an answer is to a pair that the study does not have")
            yield given


def export(answers: Answers, format: str) -> str:
    """Every answer that counts, with what was shown and which system said it: `csv` or `jsonl`."""
    rows = list(_exported(answers))
    if format == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if format != "csv":
        raise ConfigError(f"no format is called '{format}'; choose csv or jsonl")
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


_COLUMNS = (
    *("rater", "picture", "check", "left", "right", "left_system", "right_system"),
    *("question", "choice", "preferred", "seconds", "at"),
)


def _exported(answers: Answers) -> Iterator[dict[str, Any]]:
    systems = answers.study.systems
    for rating in answers.ratings():
        shown, preferred = rating.shown, rating.preferred
        left, right = shown.sides
        names = ("right caption", "wrong caption") if rating.is_check else systems
        sides = names[::-1] if shown.flipped else names
        yield {
            "rater": rating.rater,
            "picture": shown.of.name if isinstance(shown.of, Pair) else shown.of.picture,
            "check": rating.is_check,
            "left": left,
            "right": right,
            "left_system": sides[0],
            "right_system": sides[1],
            "question": rating.question,
            "choice": rating.choice,
            "preferred": "tie" if preferred is None else names[preferred],
            "seconds": rating.seconds,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(rating.at)),
        }
