"""The mean mask of captioners with alignment: whether alignment was at work at all (paper 0)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sightline.checkpoint import load_config
from sightline.evaluation.history import last_terms, read_history
from sightline.experiments.captioned import by_run
from sightline.experiments.claims import Answer, untested
from sightline.experiments.experiment import Record
from sightline.experiments.scored import runs_of

ALIGNED = "aligned_transformer"

MASKS = (0.6, 0.9)
"""Means in which masks tell regions apart. Near 1 alignment changes nothing, near 0 all alike."""


def outside(masks: Mapping[str, float], names: Iterable[str] | None = None) -> str | None:
    """Why the mean masks of these are no test of alignment; nothing where they all are one.

    `names` are what is to have masks, by default all that are known.

    >>> outside({"gate": 0.99})
    'Masks of gate average 0.99, outside of 0.6 to 0.9: choose another λ for this grid.'
    >>> outside({"gate": 0.75})
    >>> outside({"gate": 0.75}, ["gate", "max"])
    'The mean mask of max is not known, so it is not known whether alignment was at work.'
    """
    low, high = MASKS
    for name in masks if names is None else names:
        if name not in masks:
            return (
                f"The mean mask of {name} is not known, so it is not known whether alignment was "
                "at work."
            )
        if not low <= masks[name] <= high:
            return (
                f"Masks of {name} average {masks[name]:.2f}, outside of {low} to {high}: choose "
                "another λ for this grid."
            )
    return None


def where_masks_work(
    test: Callable[[dict[str, Any]], Answer],
) -> Callable[[dict[str, Any]], Answer]:
    """A claim's test that decides on runs with alignment only where it was at work."""

    def answer(data: dict[str, Any]) -> Answer:
        found = test(data)
        reason = outside(data.get("masks", {}), runs_of(data, ALIGNED))
        return untested(f"{reason} {found.sentence}") if reason else found

    return answer


def mean_masks(records: Sequence[Record]) -> dict[str, float]:
    """The mean mask of every run of which it is known."""
    means = {
        run: [record["mask"] for record in of_run if record.get("mask") is not None]
        for run, of_run in by_run(records).items()
    }
    return {run: float(np.mean(values)) for run, values in means.items() if values}


def trained_mask(run: Path, checkpoint: Path) -> float | None:
    """The mean mask in the last steps that were logged before a run's checkpoint, if it has any."""
    if not (run / "history.jsonl").is_file():
        return None
    step = (load_config(checkpoint).get("training") or {}).get("step", np.inf)
    return last_terms([line for line in read_history(run) if line.step <= step]).get("mask")
