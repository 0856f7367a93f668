"""Files that Sightline keeps: studies and their answers, reviews, records, searches, jobs."""

import json
import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import optuna
from PIL import Image

from attack.mutation import damage_json, damage_sqlite
from attack.target import Target, write
from sightline.blind.answers import Answers, export
from sightline.blind.study import QUESTIONS, Check, Pair, Study, new_raters
from sightline.bulk.formats import open_format
from sightline.bulk.output import Output
from sightline.experiments.reproduction import collect
from sightline.kept_records import KeptRecords
from sightline.review.collection import Review
from sightline.server.audit import read_page
from sightline.training.tuning import Range, _check_search, _open_study, attempts_of

ABOUT = {"seed": 0}
JOB = {"model": "m", "batch_size": 2}
FINDINGS = Path(__file__).parents[2] / "docs" / "experiments" / "paper0-figure4" / "data.json"
RANGES = [Range.parse("optimizer.learning_rate=1e-4..1e-2 log")]


def kept_files(folder: Path) -> dict[str, Target]:
    """Whole files, by name."""
    study = _study(folder / "study")
    review = _review(folder / "photos")
    records = folder / "records" / "measurements.jsonl"
    KeptRecords(records, ABOUT).add("1.jpg", {"words": 3, "support": [0.5, None]})
    search = _search(folder / "search")
    job = _job(folder / "job")
    document = write(folder / "findings" / "one" / "data.json", FINDINGS.read_bytes())
    page = write(
        folder / "report.html",
        '<script type="application/json" id="data">{"title": "x", "pictures": []}</script>',
    )
    targets = {
        "study.json": (study / "study.json", damage_json, partial(_answers, study)),
        "answers.sqlite": (study / "answers.sqlite", damage_sqlite, partial(_answers, study)),
        "review.sqlite": (review / "review.sqlite", damage_sqlite, partial(_decisions, review)),
        "measurements.jsonl": (records, damage_json, partial(_records, records)),
        "search.json": (search / "search.json", damage_json, partial(_resume_search, search)),
        "study.jsonl": (search / "study.jsonl", damage_json, partial(_resume_search, search)),
        "job.json": (job / "out.jsonl.unfinished" / "job.json", damage_json, partial(_go_on, job)),
        "journal.jsonl": (
            job / "out.jsonl.unfinished" / "journal.jsonl", damage_json, partial(_go_on, job)),
        "failures.jsonl": (job / "out.jsonl.failures.jsonl", damage_json, partial(_go_on, job)),
        "data.json": (document, damage_json, partial(collect, folder / "findings")),
        "report.html": (page, damage_json, partial(read_page, page)),
    }  # fmt: skip
    return {name: Target(*parts) for name, parts in targets.items()}


def _elsewhere(folder: Path, use: Callable[[Path], object]) -> None:
    """Use a copy of a folder: what opens it to write may write to it."""
    with tempfile.TemporaryDirectory(prefix="attack-") as place:
        for path in folder.rglob("*"):
            if path.is_file():
                write(Path(place) / path.relative_to(folder), path.read_bytes())
        use(Path(place))


def _study(folder: Path) -> Path:
    folder.mkdir(parents=True)
    pairs = tuple(Pair(f"{n}.jpg", f"{n}.png", ("a dog", "a cat")) for n in range(3))
    raters = new_raters(["Ann", "Ben"])
    check = Check("3.jpg", ("a dog", "dog a"), ("naturalness",))
    Study(("one", "two"), QUESTIONS, pairs, (check,), raters, "s" * 16).save(folder)
    with Answers(folder) as answers:
        for place in range(2):
            answers.give(raters[0], place, {each.name: "left" for each in QUESTIONS}, 1.5)
    _fold_log(folder / "answers.sqlite")
    return folder


def _fold_log(path: Path) -> None:
    """All of a database in its file."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def _answers(folder: Path) -> None:
    def use(copy: Path) -> None:
        with Answers(copy) as answers:
            for rater in answers.study.raters:
                answers.given(rater)
            for form in ("csv", "jsonl"):
                export(answers, form)

    _elsewhere(folder, use)


def _review(photos: Path) -> Path:
    photos.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(photos / "1.jpg")
    with Review(photos) as review:
        review.scan()
        row = json.dumps({"caption": "a dog", "words": [{"text": "a"}, {"text": "dog"}]})
        with review.database.writing() as write:
            write("UPDATE pictures SET caption = 'a dog', row = ?", (row,))
        review.decide(1, "edited", "a brown dog")
        state = review.state
    _fold_log(state / "review.sqlite")
    return state


def _decisions(state: Path) -> None:
    def use(copy: Path) -> None:
        photos = state.with_suffix("")
        with Review(photos, copy) as review:
            review.scan()
            review.counts()
            for entry in review.entries(review.order()):
                review.path(entry.id)
                review.row(entry.id)
                review.decide(entry.id, "accepted", "a dog")

    _elsewhere(state, use)


def _records(path: Path) -> None:
    def use(copy: Path) -> None:
        record = KeptRecords(copy / path.name, ABOUT)
        if "1.jpg" in record:
            assert record["1.jpg"] == {"words": 3, "support": [0.5, None]}

    _elsewhere(path.parent, use)


def _search(folder: Path) -> Path:
    folder.mkdir(parents=True)
    _check_search(folder, "scenes/soft_attention", RANGES, [])
    study = _open_study(folder, "scenes/soft_attention", startup=5)
    for score in (0.1, 0.2):
        trial = study.ask({each.key: each.distribution() for each in RANGES})
        trial.report(score, 1)
        study.tell(trial, score)
    study.ask({each.key: each.distribution() for each in RANGES})
    return folder


def _resume_search(folder: Path) -> None:
    def use(copy: Path) -> None:
        _check_search(copy, "scenes/soft_attention", RANGES, [])
        study = _open_study(copy, "scenes/soft_attention", startup=5)
        attempts_of(study)
        study.get_trials(states=(optuna.trial.TrialState.RUNNING,))

    _elsewhere(folder, use)


def _job(folder: Path) -> Path:
    output = folder / "out.jsonl"
    with Output(open_format(output)) as sink:
        sink.begin(JOB)
        write(output, '{"path": "1.jpg", "sha256": "%s"}\n' % ("0" * 64))
        write(Path(f"{output}.failures.jsonl"), '{"path": "2.jpg", "kind": "k", "error": "e"}\n')
        sink._commit()
    return folder


def _go_on(folder: Path) -> None:
    def use(copy: Path) -> None:
        with Output(open_format(copy / "out.jsonl")) as sink:
            assert sink.begin(JOB) >= 0

    _elsewhere(folder, use)
