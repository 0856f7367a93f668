"""The page of verdicts says what stored results say, and no more."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sightline.cli.reproduction import command
from sightline.errors import DataError
from sightline.experiments import reproduction
from sightline.experiments.claims import Claim, decide
from sightline.experiments.experiment import Experiment, no_tasks
from sightline.experiments.registry import EXPERIMENTS, find_experiment
from sightline.experiments.reproduction import collect, to_page
from sightline.experiments.runner import page_of, table_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def one_claim(monkeypatch):
    claim = Claim("table 1", "A | B.", lambda data: decide(data["gain"] > 0, f"{data['gain']}."))
    experiment = Experiment("paper3-x", "?", dict, no_tasks, None, (claim,))
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {"paper3-x": ("", "")})
    monkeypatch.setattr(reproduction, "find_experiment", lambda name: experiment)


def store(folder, **data):
    folder.mkdir(parents=True)
    (folder / "data.json").write_text(json.dumps(data))


def test_each_stored_result_is_put_to_the_claim(one_claim, tmp_path):
    store(tmp_path / "coco", experiment="paper3-x", gain=2, data="coco")
    store(tmp_path / "scenes", experiment="paper3-x", gain=-1)
    page = to_page(collect(tmp_path), "command")
    assert "Of 1 claims, 0 are reproduced, 0 are not, 1 are reproduced by some" in page
    assert "## Paper 3: Image-to-text" in page
    assert (
        r"| table 1 | A \| B. | *reproduced* | coco | 2. | [coco](experiments/coco/table.md) |"
        in page
    )
    assert r"| *not reproduced* | - | -1. | [scenes](experiments/scenes/table.md) |" in page


def test_a_claim_without_a_result_is_not_tested(one_claim, tmp_path):
    (row,) = collect(tmp_path)
    assert row.answer.verdict == "not tested"
    assert "| *not tested* | - | No run of this experiment is stored. | `paper3-x` |" in to_page(
        [row], ""
    )


def test_foreign_results_are_refused(one_claim, tmp_path):
    store(tmp_path / "other", experiment="paper9")
    with pytest.raises(DataError, match="is not the data of an experiment that is known here"):
        collect(tmp_path)
    store(tmp_path / "b" / "old", experiment="paper3-x")
    with pytest.raises(DataError, match=r"old/data.json: lacks what a claim asks for: 'gain'"):
        collect(tmp_path / "b")


def test_tables_are_renewed_below_what_was_measured(one_claim, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {"paper3-x": ("", "")})
    store(tmp_path / "x", experiment="paper3-x", gain=2, budgets={"run": "9 steps"})
    table = tmp_path / "x" / "table.md"
    table.write_text("| run |\n| --- |\n\n| more |\n\n- table 1: “Old.” *not tested*. 3.\n")
    (tmp_path / "x" / "kept").write_text("")
    for _ in range(2):
        reproduction.renew_tables(tmp_path)
        assert table.read_text() == (
            "| run |\n| --- |\n\n| more |\n\n- table 1: “A | B.” *reproduced*. 2.\n\n"
            "Training: run: 9 steps.\n"
        )


def test_tables_are_renewed_all_or_none(one_claim, tmp_path):
    store(tmp_path / "a", experiment="paper3-x", gain=2, budgets={})
    store(tmp_path / "b", experiment="paper3-x", budgets={})
    for name in "ab":
        (tmp_path / name / "table.md").write_text("| run |\n")
    with pytest.raises(DataError, match=r"b/data.json: lacks what a claim asks for: 'gain'"):
        reproduction.renew_tables(tmp_path)
    assert (tmp_path / "a" / "table.md").read_text() == "| run |\n"


def test_stored_tables_end_with_what_their_data_says():
    stored = sorted((ROOT / "docs" / "experiments").glob("*/data.json"))
    assert len(stored) > 25
    for path in stored:
        data, table = json.loads(path.read_text()), (path.parent / "table.md").read_text()
        renewed = page_of(table_of(table), find_experiment(data["experiment"]), data)
        assert table == renewed, f"{path.parent}: sightline reproduction --tables renews it"


def test_every_experiment_is_called_by_its_name():
    for name, (_, line) in EXPERIMENTS.items():
        experiment = find_experiment(name)
        assert (experiment.name, experiment.question) == (name, line)
        for claim in experiment.claims:
            assert claim.statement.endswith("."), claim


def test_the_page_in_the_documentation_is_what_the_command_makes(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    stored = Path("docs/reproduction.md").read_text()
    page = to_page(
        collect(Path("docs/experiments")),
        "sightline reproduction docs/experiments -o docs/reproduction.md",
    )
    assert page == stored
    result = CliRunner().invoke(command, ["docs/experiments", "-o", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    verdicts = [line.split("|")[3] for line in page.splitlines() if line.startswith("| ")]
    written = (tmp_path / "page.md").read_text()
    assert [x.split("|")[3] for x in written.splitlines() if x.startswith("| ")] == verdicts
