"""The table of runs, from a run of two stages."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sightline.checkpoint import BUNDLED, pack_checkpoint, read_pointers, write_pointers
from sightline.cli.evaluate import command as evaluate
from sightline.cli.results import command as results
from sightline.errors import CheckpointError, ConfigError
from sightline.evaluation.published import PUBLISHED
from sightline.evaluation.results import SCORES, results_of
from sightline.recipe import load_recipe
from sightline.training.loop import train
from tiny_recipe import write_tiny_recipe


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    # At a rate of nothing the second stage cannot get better.
    objective, rate = "{name: self_critical, samples: 2}", "{learning_rate: 0.0}"
    stage = f"then=[{{objective: {objective}, optimizer: {rate}, epochs: 1}}]"
    recipe = load_recipe(write_tiny_recipe(folder), ("epochs=2", "dev.metric=BLEU-1", stage))
    train(recipe, folder / "tiny")
    name_best(folder / "tiny", "last")  # a stage so small need not have got better
    return folder / "tiny"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(trained, tmp_path / "tiny")


def name_best(run: Path, pointer: str) -> None:
    pointers = read_pointers(run)
    write_pointers(run, pointers | {"best": pointers[pointer]})


def test_a_run_of_two_stages_has_a_row_for_each(run: Path, tmp_path: Path) -> None:
    runner, metrics = CliRunner(), ["--metrics", "bleu,cider-d"]
    before = [str(run), "--stage", "1", *metrics]
    assert runner.invoke(evaluate, before, catch_exceptions=False).exit_code == 0
    first, last = results_of(run)
    assert (first.objective, last.objective) == (
        "cross_entropy",
        "cross_entropy, then self_critical",
    )
    assert (first.model, first.encoder) == ("soft_attention", "efficientnet_lite0 64 px")
    assert first.epochs == 2
    assert first.parameters == last.parameters > 1000
    stored = json.loads((run / "evaluation-test-stage-1" / "scores.json").read_text())
    assert first.bad_endings == stored["bad_endings"]
    stored = stored["scores"]
    assert first.test == stored
    assert last.test == {}  # nobody has evaluated it
    records = [json.loads(line) for line in (run / "history.jsonl").open()]
    dev = [record["dev"] for record in records if "dev" in record]
    assert first.dev == dev[0]

    page = tmp_path / "results.md"
    done = runner.invoke(results, [str(run), "-o", str(page)], catch_exceptions=False)
    assert done.exit_code == 0
    rows = [line for line in page.read_text().splitlines() if line.startswith("| tiny |")]
    assert len(rows) == 2
    assert rows[0].split(" | ")[10] == f"{100 * stored['BLEU-2']:.1f}"
    assert "`sightline results runs/tiny -o results.md`" in page.read_text()
    as_json = runner.invoke(results, [str(run), "--json"], catch_exceptions=False).stdout
    assert json.loads(as_json)[0]["test"] == stored

    with pytest.raises(CheckpointError, match="2 phases have ended, so there is no phase 3"):
        runner.invoke(evaluate, [str(run), "--stage", "3"], catch_exceptions=False)


def test_a_stage_that_got_no_better_has_a_row_of_its_own(run: Path) -> None:
    name_best(run, "stage-1")
    train(load_recipe(run / "recipe.yaml"), run)  # nothing is left but to name what it ended with
    assert read_pointers(run)["stage-2"] == read_pointers(run)["last"]
    first, last = results_of(run)
    assert last.objective == "cross_entropy, then self_critical"
    assert last.epochs == first.epochs + 1
    arguments = [str(run), "--stage", "2", "--metrics", "bleu"]
    assert CliRunner().invoke(evaluate, arguments, catch_exceptions=False).exit_code == 0
    first, last = results_of(run)
    assert (first.test, bool(last.test)) == ({}, True)


def test_a_stage_under_way_has_its_best_so_far(run: Path) -> None:
    pointers = read_pointers(run)
    write_pointers(run, {name: pointers[name] for name in ("last", "best", "stage-1")})
    assert [row.epochs for row in results_of(run)] == [2, 3]
    write_pointers(run, {"last": pointers["stage-1"]})  # and nothing was evaluated yet
    assert [row.epochs for row in results_of(run)] == [2]


def test_runs_that_differ_in_their_seeds_alone_are_averaged(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    runs = [tmp_path / name for name in ("small-0", "small-1", "other")]
    for run, change in zip(runs, ("seed=0", "seed=1", "model.dropout=0.5"), strict=True):
        train(load_recipe(tiny_recipe, ("epochs=1", "dev.metric=BLEU-1", change)), run)
    arguments = [str(run) for run in runs]
    table = CliRunner().invoke(results, arguments, catch_exceptions=False).stdout
    both = [row.dev["CIDEr-D"] for run in runs[:2] for row in results_of(run)]
    first, second = (100 * value for value in both)
    spread = f"{(first + second) / 2:.1f} ± {abs(first - second) / 2**0.5:.1f}"
    names, dev_bleu, dev_cider = table.splitlines()[-1].split(" | ")
    assert names == "| small-0, small-1"
    assert dev_bleu != "-"
    assert dev_cider == f"{spread} |"
    assert "METEOR" not in table  # nobody has evaluated them
    table = CliRunner().invoke(results, [*arguments, "--settings"], catch_exceptions=False).stdout
    settings = [line.split(" | ")[-1] for line in table.splitlines()[2:5]]
    assert settings == ["- |", "seed=1 |", "model.dropout=0.5 |"]
    same = CliRunner().invoke(results, [arguments[0]] * 2, catch_exceptions=False).stdout
    assert "±" not in same  # one run twice is not two runs
    alone = CliRunner().invoke(results, arguments[1:], catch_exceptions=False).stdout
    assert "±" not in alone


def test_what_others_print_stands_below(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    arguments = [str(run), "--published", "coco", "-o", str(page)]
    assert CliRunner().invoke(results, arguments, catch_exceptions=False).exit_code == 0
    assert "`sightline results runs/tiny --published coco -o results.md`" in page.read_text()
    (row,) = (line for line in page.read_text().splitlines() if "soft (paper 1)" in line)
    assert row.split(" | ")[1:8] == ["70.7", "49.2", "34.4", "24.3", "23.9", "-", "-"]
    assert "brevity" in row.split(" | ")[8]
    for option in (["--published", "coco"], ["--settings"]):
        refused = CliRunner().invoke(results, [str(run), *option, "--json"])
        assert refused.exit_code == 2
        assert "cannot be combined with --json" in refused.stderr


def test_published_results_need_no_runs() -> None:
    done = CliRunner().invoke(results, ["--published", "flickr30k"], catch_exceptions=False)
    assert done.stdout.startswith("| published |")
    refused = CliRunner().invoke(results, [])
    assert refused.exit_code == 2
    assert "give training runs, or --published" in refused.stderr


def test_what_was_packed_has_a_row(run: Path, tmp_path: Path) -> None:
    pointers = read_pointers(run)
    began, ended = (run / pointers[name] for name in ("stage-1", "stage-2"))
    packed = tmp_path / "box"
    pack_checkpoint([ended, ended, began], packed)
    (packed / "evaluation-test").mkdir()
    scores = {"scores": {"BLEU-4": 0.25, "SPICE size": None}, "bad_endings": 0.5}  # one undefined
    (packed / "evaluation-test" / "scores.json").write_text(json.dumps(scores))
    (row,) = results_of(packed)
    first, last = results_of(run)
    assert (row.run, row.objective, row.encoder) == ("box", "mean of 2", first.encoder)
    assert (row.epochs, row.seconds) == (3, first.seconds + last.seconds)
    assert (row.test, row.bad_endings, row.dev) == ({"BLEU-4": 0.25}, 0.5, {})
    with pytest.raises(CheckpointError, match="holds evaluation-test"):
        pack_checkpoint([began], packed)  # its scores would be of other weights
    pack_checkpoint([began], tmp_path / "again")
    (row,) = results_of(tmp_path / "again")
    assert (row.objective, row.epochs, row.test) == ("packed", 2, {})


def test_rows_outlive_their_runs(run: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    rows = tmp_path / "rows.json"
    printed = runner.invoke(results, [str(run), "--json"], catch_exceptions=False).stdout
    rows.write_text(printed)
    assert results_of(rows) == results_of(run)
    page = tmp_path / "results.md"
    arguments = [str(rows), str(run), "-o", str(page)]
    assert runner.invoke(results, arguments, catch_exceptions=False).exit_code == 0
    table = page.read_text().splitlines()
    assert table[2] == "`sightline results rows.json runs/tiny -o results.md`"
    lines = [line for line in table if line.startswith("| tiny |")]
    assert lines[:2] == lines[2:]  # of the file, of the run
    assert len(lines) == 4

    rows.write_text(printed.replace('"epochs": 3', '"epochs": "three"'))
    with pytest.raises(ConfigError, match=r"rows\.json, row 2\.epochs: must be"):
        results_of(rows)
    rows.write_text("{}")
    with pytest.raises(ConfigError, match="must be a list of rows"):
        results_of(rows)
    rows.write_text("| run |")
    with pytest.raises(ConfigError, match="not JSON"):
        results_of(rows)
    with pytest.raises(ConfigError, match=r"gone does not exist: give a training run, or a file"):
        results_of(tmp_path / "gone")


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("coco", ["--published", "coco"]),
        ("results", ["--published", "flickr8k"]),
        ("exploration", ["--settings"]),
        ("flickr30k", ["--published", "flickr30k"]),
    ],
)
def test_tables_of_the_documents_are_made_from_recorded_rows(
    name: str, options: list[str], tmp_path: Path
) -> None:
    page = tmp_path / f"{name}.md"
    rows = DOCS / f"{name}.json"
    arguments = [*([str(rows)] if rows.exists() else []), *options, "-o", str(page)]
    assert CliRunner().invoke(results, arguments, catch_exceptions=False).exit_code == 0
    assert page.read_text() == (DOCS / f"{name}.md").read_text()


def test_the_captioner_in_the_box_has_the_same_scores_everywhere() -> None:
    (row,) = (row for row in results_of(DOCS / "coco.json") if row.run == "bundled")
    percent = {name: f"{100 * score:.1f}" for name, score in row.test.items()}
    card = " | ".join(percent[name] for name in SCORES)
    assert f"| {card} |" in (BUNDLED / "README.md").read_text()
    readme = (DOCS.parent / "README.md").read_text()
    att2in = next(row.scores for row in PUBLISHED["coco"] if "Att2in" in row.system)
    for scores in (percent, att2in):
        few = " | ".join(str(scores[name]) for name in ("BLEU-4", "METEOR", "CIDEr-D"))
        assert f"| {few} |" in readme


def test_a_folder_without_a_run_is_one_line_that_names_no_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a training run nor a checkpoint") as caught:
        results_of(tmp_path)
    assert "--" not in str(caught.value)
