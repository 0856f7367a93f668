"""Running an experiment: what is measured is kept at once, and what is kept is not measured again.

A folder holds `measurements.jsonl`, a line for each finished task below a line that says of what,
and in the end `table.md`, `figure.png`, `figure.svg` and `data.json`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.config import to_dict
from sightline.errors import ConfigError, DataError
from sightline.experiments.experiment import Experiment, Findings, Record, Subject
from sightline.files import atomic_write
from sightline.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASUREMENTS = "measurements.jsonl"


def run_experiment(
    experiment: Experiment,
    subjects: Sequence[Subject],
    options: Any,
    folder: Path,
    *,
    setting: dict[str, Any] | None = None,
    show_progress: bool = False,
) -> Findings:
    """Do what is left of the work, and write what follows from all of it to `folder`.

    `setting` says what the work is done on (data, split and the like). A folder that holds
    measurements of another setting or other options is refused.

    >>> run_experiment(experiment, subjects, Options(), Path("out"))  # doctest: +SKIP
    Findings(table='| run | map | …', …)
    """
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        raise ConfigError(f"two captioners are called alike: {', '.join(sorted(names))}")
    about = {
        "experiment": experiment.question,
        "captioners": names,
        "options": to_dict(options),
        **(setting or {}),
    }
    path = folder / MEASUREMENTS
    records = _resume(path, about)
    tasks = list(experiment.tasks(subjects, options))
    left = [task for task in tasks if task.key not in records]
    bar = progress(
        left,
        "measuring",
        total=len(tasks),
        done=len(tasks) - len(left),
        unit="picture",
        show=show_progress,
    )
    with path.open("a", encoding="utf-8") as file:
        for task in bar:
            records[task.key] = task.measure()
            file.write(json.dumps({"task": task.key, "record": records[task.key]}) + "\n")
            file.flush()
    findings = experiment.conclude([records[task.key] for task in tasks], options)
    _write(folder, findings, about)
    return findings


def _resume(path: Path, about: dict[str, Any]) -> dict[str, Record]:
    """What was measured before. A last line that was cut off is taken away."""
    header = json.dumps(about)
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    if whole and whole[0].strip() != header:
        raise ConfigError(
            f"{path}: holds measurements of other captioners, data or options; choose another "
            "folder, or delete this file"
        )
    if not whole or len(whole) < len(lines):
        with atomic_write(path) as file:
            file.writelines(whole or [header + "\n"])
    records = {}
    for number, line in enumerate(whole[1:], 2):
        try:
            kept = json.loads(line)
            records[kept["task"]] = kept["record"]
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}, line {number}: is not a measurement") from None
    return records


def _write(folder: Path, findings: Findings, about: dict[str, Any]) -> None:
    with atomic_write(folder / "table.md") as file:
        file.write(findings.table)
    with atomic_write(folder / "data.json") as file:
        json.dump({**about, **findings.data}, file, indent=1)
        file.write("\n")
    for suffix in ("png", "svg"):
        _save_figure(findings.figure, folder / f"figure.{suffix}")


def _save_figure(figure: "Figure", path: Path) -> None:
    from matplotlib import rc_context

    # The same numbers make the same file: no date, no random names.
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with rc_context({"svg.hashsalt": "sightline"}), atomic_write(path, "wb") as file:
        figure.savefig(file, format=path.suffix[1:], dpi=110, metadata=metadata)
