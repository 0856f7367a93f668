"""Answers are kept, count once, and are exported with what they were about."""

import csv
import io
import json
import threading

import pytest

from sightline.blind.answers import Answers, export
from sightline.blind.study import Check
from sightline.errors import ConfigError

ALL = ("naturalness", "relevance", "richness")


def same(choice):
    return dict.fromkeys(ALL, choice)


def test_the_last_answer_counts_and_none_is_lost(study_folder):
    with Answers(study_folder) as answers:
        ann, ben, _ = answers.study.raters
        answers.give(ann, 0, same("left"), 2.5)
        answers.give(ann, 0, {**same("left"), "relevance": "tie"})
        answers.give(ben, 3, same("right"))
        assert answers.given(ann) == {0: {**same("left"), "relevance": "tie"}}
        kept = answers._database.rows("SELECT count(*) FROM answers")
        assert kept == [(9,)]
    with Answers(study_folder, read_only=True) as answers:  # another process, later
        ratings = {(r.rater, r.question): r for r in answers.ratings()}
        assert len(ratings) == 6
        assert ratings["Ann", "relevance"].preferred is None
        shown = answers.sheets["Ann"][0]
        assert shown.of.captions[ratings["Ann", "richness"].preferred] == shown.sides[0]


def test_answers_that_cannot_be_meant(study_folder):
    with Answers(study_folder) as answers:
        ann = answers.study.raters[0]
        for place, choices in (
            *((99, same("left")), (-1, same("left")), (0, same("both")), (0, {})),
            *((0, {"relevance": "left"}), (0, {**same("left"), "other": "left"})),
        ):
            with pytest.raises(ConfigError):
                answers.give(ann, place, choices)
        assert answers.ratings() == []


def test_one_writer_and_any_number_of_readers(study_folder):
    with Answers(study_folder) as answers:
        with pytest.raises(ConfigError, match="is in use by process"):
            Answers(study_folder)
        ann = answers.study.raters[0]
        answers.give(ann, 0, same("left"))
        with Answers(study_folder, read_only=True) as others:
            assert len(others.ratings()) == 3
    with Answers(study_folder, read_only=True) as answers:
        assert len(answers.ratings()) == 3


def test_nobody_has_answered_yet(study_folder):
    with Answers(study_folder, read_only=True) as answers:
        assert answers.ratings() == []


def test_several_raters_at_once(study_folder):
    with Answers(study_folder) as answers:

        def rate(rater):
            for place in range(len(answers.sheets[rater.name])):
                answers.give(rater, place, same("tie"))

        threads = [threading.Thread(target=rate, args=[r]) for r in answers.study.raters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers.ratings()) == 3 * 3 * 11


def test_exports_name_the_systems(study_folder):
    with Answers(study_folder) as answers:
        ann = answers.study.raters[0]
        for place, shown in enumerate(answers.sheets["Ann"]):
            answers.give(ann, place, same("right" if shown.flipped else "left"), 1.0)
        lines = [json.loads(line) for line in export(answers, "jsonl").splitlines()]
        rows = list(csv.DictReader(io.StringIO(export(answers, "csv"))))
        with pytest.raises(ConfigError, match="no format"):
            export(answers, "xml")
    assert len(lines) == len(rows) == 33
    for line, row in zip(lines, rows, strict=True):
        assert line["preferred"] == ("right caption" if line["check"] else "ours.jsonl")
        side = "left" if line["left_system"] == line["preferred"] else "right"
        assert line["choice"] == side
        assert line["check"] or line[side].endswith("outside")
        assert row["preferred"] == line["preferred"]
    assert sum(line["check"] for line in lines) == 6


def test_a_rater_is_known_by_the_token_alone(study):
    for rater in study.raters:
        assert study.rater(rater.token) == rater
        assert study.rater(rater.token[:-1]) is None
    assert study.rater("") is None
    assert study.rater("é" * 22) is None


def test_checks_are_not_pairs(study_folder):
    with Answers(study_folder) as answers:
        for shown in answers.sheets.values():
            assert sum(isinstance(s.of, Check) for s in shown) == 2
