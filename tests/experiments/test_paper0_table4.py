"""Table 4 of paper 0 from answers whose preference is known."""

import dataclasses
import json
import random

import pytest
from click.testing import CliRunner

from sightline.blind.answers import Answers
from sightline.blind.preference import attention, verdicts
from sightline.blind.study import Check, Pair, Question, Study, new_raters
from sightline.cli.experiment import command
from sightline.errors import ConfigError, DataError

WIN, TIE = 0.5, 0.3  # the share of answers for the first system, and of ties


def make_study(folder, pictures=60, identical=(), raters=("Ann", "Ben", "Eve")):
    pairs = tuple(Pair(f"{n}.jpg", f"{n}.jpg", (f"a {n}", f"b {n}")) for n in range(pictures))
    checks = tuple(Check(f"{n}.jpg", (f"a {n}", "no"), ("relevance",)) for n in range(4))
    questions = (Question("relevance", "Which fits?"), Question("richness", "Which tells more?"))
    study = Study(
        *(("ours", "theirs"), questions, pairs, checks, new_raters(raters), "5" * 32),
        tuple(identical),
    )
    study.save(folder)
    return study


def answer_all(folder, preference, inattentive=()):
    """`preference(rater, number)` is the preferred system of a pair, or None."""
    with Answers(folder) as answers:
        for rater in answers.study.raters:
            for place, shown in enumerate(answers.sheets[rater.name]):
                wanted = 0 if isinstance(shown.of, Check) else preference(rater.name, shown.number)
                if rater.name in inattentive:
                    wanted = 1
                left = "tie" if wanted is None else ("left", "right")[wanted != shown.flipped]
                answers.give(rater, place, {"relevance": left, "richness": "tie"})


def run(folder, output, *options):
    done = CliRunner().invoke(
        command,
        ["paper0-table4", str(folder), "-o", str(output), *options],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    return done.output, json.loads((output / "data.json").read_text("utf-8"))


def test_it_recovers_a_known_preference(tmp_path):
    make_study(tmp_path / "study")
    # Drawn by rater and pair: the order in which a rater sees the pairs differs in every study.
    answer_all(
        tmp_path / "study",
        lambda rater, number: random.Random(f"{rater} {number}").choices(
            (0, None, 1), (WIN, TIE, 1 - WIN - TIE)
        )[0],
    )
    table, data = run(tmp_path / "study", tmp_path / "out")
    relevance = data["studies"][0]["questions"]["relevance"]
    for name, truth in (("wins", WIN), ("ties", TIE), ("losses", 1 - WIN - TIE)):
        assert relevance[name]["low"] < truth < relevance[name]["high"]
        assert relevance[name]["high"] - relevance[name]["low"] < 0.2
    assert relevance["answers"] == 180
    assert relevance["net"]["low"] > 0
    # These raters do not look at pictures: they agree by chance alone.
    assert abs(relevance["alpha"]["value"]) < 0.15
    assert relevance["alpha"]["low"] < 0 < relevance["alpha"]["high"]
    row = next(line for line in table.splitlines() if line.startswith("| study | relevance"))
    assert "| ours |" in row
    richness = data["studies"][0]["questions"]["richness"]
    assert richness["ties"]["mean"] == 1
    assert richness["alpha"]["value"] is None  # nobody ever disagreed, or could have
    assert "| neither is shown to be | - |" in table
    assert "paper 0, table 4 | relevance | 28.0 | 45.5 | 26.5 | +1.5" in table
    assert (tmp_path / "out" / "figure.png").stat().st_size > 5000


def test_raters_who_agree(tmp_path):
    make_study(tmp_path / "study", 30)
    answer_all(tmp_path / "study", lambda rater, number: (0, None, 1)[number % 3])
    _, data = run(tmp_path / "study", tmp_path / "out")
    relevance = data["studies"][0]["questions"]["relevance"]
    assert relevance["alpha"]["value"] == 1
    assert relevance["net"]["mean"] == 0


def test_who_fails_the_checks_does_not_count(tmp_path):
    study = make_study(tmp_path / "study", 10)
    answer_all(tmp_path / "study", lambda rater, number: 0, inattentive=("Eve",))
    table, data = run(tmp_path / "study", tmp_path / "out")
    assert data["studies"][0]["questions"]["relevance"]["wins"]["mean"] == 1
    assert "Raters who count: 2 (Ann, Ben)." in table
    assert "failing attention checks: Eve (0 of 4 checks)" in table
    _, data = run(tmp_path / "study", tmp_path / "all", "--set", "passed=0")
    assert data["studies"][0]["questions"]["relevance"]["wins"]["mean"] == pytest.approx(2 / 3)
    with Answers(tmp_path / "study", read_only=True) as answers:
        ratings = answers.ratings()
    assert attention(study, ratings)["Ann"].right == 4


def test_identical_captions_are_ties_and_no_agreement(tmp_path):
    study = make_study(tmp_path / "study", 10, identical=[f"same-{n}.jpg" for n in range(10)])
    answer_all(tmp_path / "study", lambda rater, number: number % 2)
    table, data = run(tmp_path / "study", tmp_path / "out")
    relevance = data["studies"][0]["questions"]["relevance"]
    assert relevance["ties"]["mean"] == 0.5
    assert relevance["wins"]["mean"] == 0.25
    assert relevance["alpha"]["value"] == 1
    assert "10 more pictures have the same caption" in table
    with Answers(tmp_path / "study", read_only=True) as answers:
        assert len(verdicts(study, answers.ratings())) == 2 * 3 * 20


def test_new_answers_are_read_again(tmp_path):
    make_study(tmp_path / "study", 6)
    with Answers(tmp_path / "study") as answers:
        ann = answers.study.raters[0]
        for place in range(5):
            answers.give(ann, place, {"relevance": "tie", "richness": "tie"})
    _, first = run(tmp_path / "study", tmp_path / "out", "--set", "passed=0")
    answer_all(tmp_path / "study", lambda rater, number: 1)
    _, second = run(tmp_path / "study", tmp_path / "out", "--set", "passed=0")
    counts = [d["studies"][0]["questions"]["relevance"]["answers"] for d in (first, second)]
    assert counts[0] <= 5
    assert counts[1] == 18
    assert second["studies"][0]["questions"]["relevance"]["losses"]["mean"] == 1


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="is not a study"):
        run(tmp_path, tmp_path / "out")
    study = make_study(tmp_path / "study", 2)
    with pytest.raises(DataError, match="no attentive rater has answered yet"):
        run(tmp_path / "study", tmp_path / "out")
    with pytest.raises(ConfigError, match="give the folder"):
        CliRunner().invoke(command, ["paper0-table4", "-o", str(tmp_path)], catch_exceptions=False)
    with pytest.raises(ConfigError, match="called alike"):
        dataclasses.replace(study, systems=("x", "x"))
