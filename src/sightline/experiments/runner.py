"""Running an experiment: what is measured is kept at once, and what is kept is not measured again.

A folder holds `measurements.jsonl`, a line for each finished task below a line that says of what,
and in the end `table.md`, `figure.png`, `figure.svg` and `data.json`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sightline.config import to_dict
from sightline.errors import ConfigError, DataError
from sightline.experiments.experiment import Experiment, Findings
from sightline.experiments.training_tasks import data_name, recipe_of, training_tasks
from sightline.files import atomic_write
from sightline.kept_records import KeptRecords
from sightline.progress import progress
from sightline.report.saving import save_figure

MEASUREMENTS = "measurements.jsonl"


def run_experiment(
    experiment: Experiment,
    subjects: Sequence[Any],
    options: Any,
    folder: Path,
    *,
    setting: dict[str, Any] | None = None,
    locations: Sequence[str] = (),
    show_progress: bool = False,
) -> Findings:
    """Do what is left of the work, and write what follows from all of it to `folder`.

    `setting` says what the work is done on (data, split and the like). A folder that holds
    measurements of another setting or other options is refused. `locations` are overrides of the
    recipes of an experiment that trains, which say where data and caches are.

    >>> run_experiment(experiment, subjects, Options(), Path("out"))  # doctest: +SKIP
    Findings(table='| run | map | …', …)
    """
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        raise ConfigError(f"two captioners are called alike: {', '.join(sorted(names))}")
    about = {
        "experiment": experiment.name,
        "question": experiment.question,
        "captioners": names,
        "budgets": {subject.name: subject.budget for subject in subjects},
        "options": to_dict(options),
        **(setting or {}),
    }
    records = KeptRecords(folder / MEASUREMENTS, about)
    if experiment.arms is None:
        tasks = list(experiment.tasks(subjects, options))
    else:
        arms = experiment.arms(options)
        tasks = list(training_tasks(arms, options, folder, locations, show_progress))
        recipes = (recipe_of(arm, 0, options, folder, locations) for arm in arms)
        about["data"] = ", ".join(dict.fromkeys(map(data_name, recipes)))
    left = [task for task in tasks if task.key not in records]
    bar = progress(
        left,
        "measuring",
        total=len(tasks),
        done=len(tasks) - len(left),
        unit="picture" if experiment.arms is None else "run",
        show=show_progress,
    )
    for task in bar:
        records.add(task.key, task.measure())
    every = [records[task.key] for task in tasks]
    about["budgets"] |= {record["arm"]: record["budget"] for record in every if "arm" in record}
    try:
        findings = experiment.conclude(every, options)
    except KeyError as error:
        if len(left) == len(tasks):  # measured just now
            raise
        raise DataError(
            f"{folder / MEASUREMENTS}: was measured by another version and lacks {error}; give "
            "another folder"
        ) from error
    data = {**about, **findings.data}
    page = page_of(findings.table, experiment, data)
    _write(folder, replace(findings, table=page, data=data))
    return replace(findings, table=page)


def page_of(table: str, experiment: Experiment, data: dict[str, Any]) -> str:
    """A table; below it what it says to the paper's claims, and what it was made with."""
    answers = [(claim, claim.test(data)) for claim in experiment.claims]
    verdicts = "".join(
        f"{_CLAIM}{claim.place}: “{claim.statement}” *{answer.verdict}*. {answer.sentence}\n"
        for claim, answer in answers
    )
    budgets = [f"{name}: {budget}" for name, budget in data["budgets"].items() if budget]
    made = f"{_MADE}{'; '.join(budgets)}.\n" if budgets else ""
    return "\n".join(part for part in (table.rstrip("\n") + "\n", verdicts, made) if part)


def table_of(page: str) -> str:
    """The table of a page, without what `page_of` put below it.

    >>> table_of("| a |\\n\\n- b\\n\\n| c |\\n\\n- table 1: “d” *reproduced*.\\n\\nTraining: e.\\n")
    '| a |\\n\\n- b\\n\\n| c |\\n'
    """
    lines = page.splitlines(keepends=True)
    while lines and (lines[-1].startswith((_CLAIM, _MADE)) or lines[-1].isspace()):
        lines.pop()
    return "".join(lines)


_CLAIM, _MADE = "- ", "Training: "


def _write(folder: Path, findings: Findings) -> None:
    with atomic_write(folder / "table.md") as file:
        file.write(findings.table)
    with atomic_write(folder / "data.json") as file:
        json.dump(findings.data, file, indent=1)
        file.write("\n")
    for name, content in findings.files.items():
        with atomic_write(folder / name) as file:
            json.dump(content, file, ensure_ascii=False)
    for suffix in ("png", "svg"):
        save_figure(findings.figure, folder / f"figure.{suffix}")
