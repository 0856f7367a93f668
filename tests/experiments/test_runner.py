"""Experiments are resumed, never mixed up, and leave a table, a figure and data."""

import json
from dataclasses import dataclass, replace

import pytest
from matplotlib.figure import Figure

from sightline.errors import ConfigError, DataError
from sightline.experiments.experiment import Experiment, Findings, Subject, Task
from sightline.experiments.runner import run_experiment

done: list[str] = []


@dataclass(frozen=True)
class Options:
    """What counts."""

    fail_at: int = 99


def tasks(subjects, options):
    def measure(number):
        if number == options.fail_at or number == FAIL:
            raise KeyboardInterrupt
        done.append(f"task {number}")
        return {"square": number**2}

    return (Task(str(number), lambda n=number: measure(n)) for number in range(4))


def conclude(records, options):
    figure = Figure()
    figure.subplots().plot([record["square"] for record in records])
    return Findings("| table |\n", figure, {"squares": [r["square"] for r in records]})


EXPERIMENT = Experiment("squares", "How large are squares?", Options, tasks, conclude)
SUBJECTS = [Subject("run", "model", (), lambda: None)]
FAIL = None


def run(folder, **options):
    return run_experiment(EXPERIMENT, SUBJECTS, Options(**options), folder)


@pytest.fixture(autouse=True)
def nothing_done():
    done.clear()


def test_everything_is_written(tmp_path):
    run(tmp_path)
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["squares"] == [0, 1, 4, 9]
    assert data["captioners"] == ["run"]
    assert (tmp_path / "table.md").read_text() == "| table |\n"
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    before = (tmp_path / "figure.svg").read_bytes()
    run(tmp_path)
    assert (tmp_path / "figure.svg").read_bytes() == before


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "FAIL", 2)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert done == ["task 0", "task 1"]
    with (tmp_path / "measurements.jsonl").open("a") as file:
        file.write('{"task": "2", "rec')  # killed while it wrote
    monkeypatch.setitem(globals(), "FAIL", None)
    assert run(tmp_path).data == {"squares": [0, 1, 4, 9]}
    assert done == ["task 0", "task 1", "task 2", "task 3"]
    run(tmp_path)
    assert len(done) == 4


def test_measurements_of_something_else_are_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(ConfigError, match="holds measurements of other captioners, data or opt"):
        run(tmp_path, fail_at=50)
    with (tmp_path / "measurements.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match=r"measurements.jsonl, line 6: 'task' is missing"):
        run(tmp_path)


def test_measurements_that_lack_what_is_asked_for_are_one_line(tmp_path):
    def fails(records, options):
        raise KeyError("cube")

    newer = replace(EXPERIMENT, conclude=fails)
    with pytest.raises(KeyError):  # measured just now: a bug
        run_experiment(newer, SUBJECTS, Options(), tmp_path / "new")
    run(tmp_path)
    with pytest.raises(DataError, match="measured by another version and lacks 'cube'; give an"):
        run_experiment(newer, SUBJECTS, Options(), tmp_path)


def test_captioners_need_names_of_their_own(tmp_path):
    with pytest.raises(ConfigError, match="two captioners are called alike: run, run"):
        run_experiment(EXPERIMENT, SUBJECTS * 2, Options(), tmp_path)
