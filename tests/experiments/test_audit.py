"""The measure of an audit: an AUC that is known, hits that are counted, and a whole run."""

from pathlib import Path

import pytest

import sightline
from sightline.data.dataset import CaptionedImage
from sightline.experiments.audit import EXPERIMENT, Options, conclude
from sightline.experiments.experiment import Subject
from sightline.experiments.runner import run_experiment


def word(place: int, kind: str, support: float) -> dict:
    return {"place": place, "kind": kind, "support": support, "marked": support < 0.3}


def record(name: str, human: float, swapped: float) -> dict:
    beside = word(2, "colour", 0.5)
    said = [
        {"source": "human", "place": None, "kind": None},
        {"source": "swapped", "place": 1, "kind": "object"},
        {"source": "other", "place": None, "kind": None},
    ]
    words = [[word(1, "object", human), beside], [word(1, "object", swapped), beside], [beside]]
    captions = [{**each, "words": of} for each, of in zip(said, words, strict=True)]
    return {"run": "r", "picture": name, "captions": captions}


def test_swapped_words_are_ranked_among_what_people_wrote() -> None:
    records = [record("a", 0.9, 0.1), record("b", 0.4, 0.6), record("c", 0.8, 0.2)]
    found = conclude(records, Options()).data["runs"]["r"]
    objects = found["kinds"]["object"]
    assert objects["swapped"] == objects["by_people"] == 3
    assert objects["auc"]["mean"] == pytest.approx(8 / 9)  # all pairs but (0.4, 0.6)
    assert objects["hit"]["mean"] == pytest.approx(2 / 3)  # 0.6 is above the 0.5 beside it
    assert objects["chance"]["mean"] == 0.5
    assert objects["swapped_marked"]["mean"] == pytest.approx(2 / 3)
    assert objects["human_marked"]["mean"] == 0
    assert found["kinds"]["colour"]["by_people"] == 3  # what stands beside a swap is not counted
    assert found["kinds"]["place"]["auc"]["mean"] is None
    assert found["captions"]["auc"]["mean"] == pytest.approx(2 / 3)  # 0.7, 0.45, 0.65 against 0.5


def test_it_runs_on_pictures_with_captions(
    fitted_checkpoint: Path, examples: Path, tmp_path
) -> None:
    captions = [("a cat on a table", "a red cat"), ("a cup of coffee", "coffee on the table")]
    images = tuple(
        CaptionedImage(f"{n}.jpg", examples / name, texts)
        for n, (name, texts) in enumerate(zip(("cat.jpg", "coffee.jpg"), captions, strict=True))
    )
    subject = Subject("tiny", "soft_attention", images, lambda: sightline.load(fitted_checkpoint))
    findings = run_experiment(EXPERIMENT, [subject], Options(), tmp_path)
    found = findings.data["runs"]["tiny"]
    assert found["pictures"] == 2
    assert found["kinds"]["object"]["swapped"] > 0
    assert (tmp_path / "table.md").read_text().startswith("| run | swapped | number | AUC |")
