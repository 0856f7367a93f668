"""What a run logged: `history.jsonl`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.config import from_dict
from sightline.errors import ConfigError
from sightline.files import DATA_BYTES
from sightline.parsing import parse_json, read_text

_PLACE = ("step", "epoch", "rate", "dev", "back_to")


@dataclass(frozen=True)
class Logged:
    """A line: the scores of dev, the terms of the loss since the line before, or a roll-back."""

    step: int
    dev: dict[str, float] | None
    terms: dict[str, float]
    back_to: int | None = None  # the step whose weights were restored


@dataclass(frozen=True)
class _Line:
    step: int
    dev: dict[str, float] | None = None
    back_to: int | None = None


def read_history(run: Path) -> list[Logged]:
    """All lines of a run's history, in order."""
    path = run / "history.jsonl"
    history = []
    for number, line in enumerate(read_text(path, DATA_BYTES, ConfigError).splitlines(), 1):
        where = f"{path}, line {number}"
        content: Any = parse_json(line, where)
        read = from_dict(_Line, content, where, strict=False, joint=": ")
        terms = {
            name: float(value)
            for name, value in content.items()
            if name not in _PLACE and isinstance(value, float | int)
        }
        history.append(Logged(read.step, read.dev, terms, read.back_to))
    return history


def last_terms(history: list[Logged]) -> dict[str, float]:
    """The terms of the loss in the last steps that were logged.

    >>> last_terms([Logged(1, None, {"mask": 0.5}), Logged(1, {"BLEU-4": 0.3}, {})])
    {'mask': 0.5}
    """
    return next((line.terms for line in reversed(history) if line.terms), {})
