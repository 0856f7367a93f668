"""The benchmark of explanations, on relevance made by hand."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from sightline.captions import Caption, Word
from sightline.data.dataset import CaptionedImage, Grounding
from sightline.encoded_picture import EncodedPicture
from sightline.errors import ConfigError, DataError
from sightline.experiments.experiment import Subject
from sightline.experiments.explanations import EXPERIMENT, Options, conclude, tasks
from sightline.experiments.runner import page_of, table_of
from sightline.explanation import Explanation
from sightline.regions import Regions

HALVES = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0))
DOG, CAT = (0.0, 0.0, 0.25, 1.0), (0.5, 0.0, 1.0, 1.0)  # their boxes
MAPS = {  # of pictures of 2 x 4 pixels, for each word
    "attention": {"dog": [[1, 1, 1, 1], [1, 1, 1, 1]], "cat": [[1, 1, 1, 1], [1, 1, 1, 1]]},
    "lrp": {"dog": [[3, 1, 2, 0], [2, 0, 0, -1]], "cat": [[4, 0, 1, 1], [4, 0, 1, 1]]},
}


class Captioned:
    """Captions every picture alike, and explains with the maps above."""

    encoder = SimpleNamespace(stops_at_regions=False)

    def open(self, picture):
        return picture

    def encode(self, picture):
        boxes = torch.tensor([HALVES])
        regions = Regions(torch.zeros(1, 2, 3), torch.ones(1, 2) > 0, boxes)
        return EncodedPicture(
            picture, torch.zeros(1, 4, 4, 3), torch.tensor([[0, 0, 1, 1]]), regions
        )

    def caption(self, picture):
        words = tuple(Word(text, 0.0, (), ()) for text in ("a", "dog", "and", "cat"))
        return Caption("a dog and cat", words, 0.0, 0.0, HALVES)

    def explain(self, picture, caption, *, words, method):
        return [
            Explanation(
                method,
                word,
                place,
                1.0,
                np.float32([3, -1]),
                HALVES,
                (),
                np.float32([]),
                np.float32(MAPS[method][word]),
            )
            for place, word in ((place, caption.words[place].text) for place in words)
        ]


def images(*labels):
    boxes = {"dog": DOG, "cat": CAT}
    return tuple(
        CaptionedImage(
            f"{number}.png",
            Image.new("RGB", (4, 2)),
            ("",),
            groundings=tuple(Grounding(name, (boxes[name],), 0, (0, 1)) for name in names),
        )
        for number, names in enumerate(labels)
    )


def measure(*labels, **changes):
    options = Options(("attention", "lrp"), region_curves=0, pixel_curves=0, shuffled=0)
    options = replace(options, **changes)
    subject = Subject("run", "td", images(*labels), Captioned)
    return [task.measure() for task in tasks([subject], options)], options


def rows(*labels):
    records, options = measure(*labels)
    json.dumps(records)  # plain
    findings = conclude(records, options)
    json.dumps(findings.data)
    return {row["map"]: row for row in findings.data["rows"]}, findings


def test_words_with_boxes_are_measured_and_no_others():
    by_map, _ = rows(["dog"], ["dog", "cat"])
    assert list(by_map) == ["attention", "lrp", "lrp, regions", "random"]
    assert by_map["lrp"]["inside"]["count"] == 3
    assert by_map["attention"]["inside"]["mean"] == pytest.approx(0)  # as much as the area
    inside = [5 / 8 - 0.25, 5 / 8 - 0.25, 4 / 12 - 0.5]
    assert by_map["lrp"]["inside"]["mean"] == pytest.approx(np.mean(inside))
    assert by_map["lrp"]["pointed"]["mean"] == pytest.approx(2 / 3)
    # The left half of both words: all of it.
    assert by_map["lrp, regions"]["pointed"]["mean"] == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert by_map["lrp"]["seconds"]["count"] == 2
    assert by_map["random"]["seconds"]["mean"] is None


def test_maps_that_end_at_the_regions_are_not_listed_twice(monkeypatch):
    monkeypatch.setattr(Captioned.encoder, "stops_at_regions", True)
    assert list(rows(["dog"])[0]) == ["attention", "lrp", "random"]


def test_a_map_prefers_a_box_or_tells_words_apart():
    by_map, _ = rows(["dog", "cat"], ["dog"])
    # On the dog's box the dog's map has 2.5 per pixel, on the cat's 0.5; the cat's has 4 and 1.
    assert by_map["lrp"]["prefers_its_box"]["mean"] == 0.5  # the dog's does, the cat's does not
    assert by_map["lrp"]["prefers_its_box"]["count"] == 2
    assert by_map["lrp"]["discriminates"]["mean"] == 1  # the cat's leans less to the dog
    assert by_map["attention"]["prefers_its_box"]["mean"] == 0.5  # neither
    assert by_map["attention"]["discriminates"]["mean"] == 0.5


def test_words_of_one_thing_are_no_pair():
    MAPS["lrp"]["cat"], before = MAPS["lrp"]["dog"], MAPS["lrp"]["cat"]
    try:
        things = images(["dog"])[0]
        both = (things.groundings[0], replace(things.groundings[0], label="cat"))
        subject = Subject("run", "td", (replace(things, groundings=both),), Captioned)
        options = Options(("lrp",), 0, 0, 0)
        (record,) = [task.measure() for task in tasks([subject], options)]
    finally:
        MAPS["lrp"]["cat"] = before
    assert len(record["words"]) == 2
    assert record["pairs"] == []


def test_the_table_has_a_row_for_each_map():
    _, findings = rows(["dog", "cat"], ["dog"])
    lines = findings.table.split("\n\n")[0].splitlines()
    assert len(lines) == 6
    assert len({line.count("|") for line in lines}) == 1
    assert lines[3].startswith("| run | lrp | +")
    assert "| 50.0 |" in lines[3]  # of one picture, without an interval


def hidden(blurred, mean):
    """Curves of a word: what it loses as the most and as the least relevant go first."""
    return [[most] * 4 for most in (blurred[0], mean[0])] + [
        [least] * 4 for least in (blurred[1], mean[1])
    ]


def measured_by_hand():
    """Two pictures, of which one has curves of two words and shuffled weights."""
    records, options = measure(["dog", "cat"], ["dog"])
    for record in records:
        for word in record["words"]:
            for of_map in word["maps"].values():
                of_map["regions"] = hidden((0.5, 0.1), (0.3, 0.0))
    words = records[0]["words"]
    for word, more in zip(words, (0.1, 0.3), strict=True):
        word["maps"]["attention"]["regions"] = hidden((0.5 + more, 0.1), (0.3, 0.2))
        word["maps"]["lrp"]["shuffled"] = more
    records[1]["words"][0]["maps"]["lrp"]["shuffled"] = 0.5
    return records, options


def test_deletion_and_insertion_stand_apart_by_replacement():
    by_row = {
        (row["map"], row["parts"], row["replacement"]): row
        for row in conclude(*measured_by_hand()).data["hidden"]
    }
    assert {parts for _, parts, _ in by_row} == {"regions"}  # no pixel was hidden
    lrp, attention = (by_row[name, "regions", "blur"] for name in ("lrp", "attention"))
    assert (lrp["deletion"]["mean"], lrp["insertion"]["mean"]) == pytest.approx((0.5, 0.1))
    assert lrp["deletion"]["count"] == 3
    assert attention["deletion"]["mean"] == pytest.approx(0.5 + 0.4 / 3)
    assert attention["insertion"]["mean"] == pytest.approx(0.1)
    by_mean = by_row["attention", "regions", "mean"]
    assert by_mean["deletion"]["mean"] == pytest.approx(0.3)
    assert by_mean["insertion"]["mean"] == pytest.approx(0.4 / 3)


def test_the_difference_to_lrp_is_one_of_the_same_words():
    records, options = measured_by_hand()
    # What all maps of a picture have in common does not widen the interval of the difference.
    for record, common in zip(records, (0.0, 0.4), strict=True):
        for word in record["words"]:
            for of_map in word["maps"].values():
                of_map["regions"] = (np.array(of_map["regions"]) + common).tolist()
            shown = word["maps"]
            shown["attention"]["regions"] = (np.array(shown["lrp"]["regions"]) - 0.2).tolist()
    findings = conclude(records, options)
    rows = {(row["map"], row["replacement"]): row for row in findings.data["hidden"]}
    gap = rows["attention", "blur"]["deletion_minus_lrp"]
    assert (gap["low"], gap["mean"], gap["high"]) == pytest.approx((-0.2, -0.2, -0.2))
    deletion = rows["attention", "blur"]["deletion"]
    assert deletion["high"] - deletion["low"] > 0.3
    (line,) = (line for line in findings.table.splitlines() if "regions, blur | attention" in line)
    assert "-20.0 (-20.0 to -20.0)" in line
    assert "| 3 |" in line  # words


def test_without_lrp_there_is_no_difference_to_it():
    records, _ = measured_by_hand()
    for record in records:
        for word in record["words"]:
            word["maps"] = {"attention": word["maps"]["attention"]}
        for leans in record["pairs"]:
            leans.pop("lrp")
    findings = conclude(records, Options(("attention",)))
    assert "deletion_minus_lrp" not in findings.data["hidden"][0]
    assert findings.table.splitlines()[-1].endswith("| - | - |")


def test_counts_and_the_interval_of_shuffled_weights_are_printed():
    table = conclude(*measured_by_hand()).table
    assert (
        "\nrun. Words: 3; pairs of words: 1; words with regions hidden: 3; words with pixels "
        "hidden: 0; words with shuffled weights: 3." in table
    )
    assert "| 0.30 (0.20 to 0.50) |" in table
    # What is written is the whole table; from the page, the whole table is read again.
    page = page_of(table, EXPERIMENT, {"budgets": {"run": "9 steps"}})
    assert page == f"{table}\nTraining: run: 9 steps.\n"
    assert table_of(page) == table


def test_what_cannot_be_measured_is_an_error():
    with pytest.raises(ConfigError, match="no method is called 'grad_kam'"):
        Options(("grad_kam",))
    with pytest.raises(DataError, match="none of the 1 pictures has boxes"):
        measure([])
    records, options = measure(["dog"])
    for record in records:
        record["words"] = []
    with pytest.raises(DataError, match="name no object that has a box"):
        conclude(records, options)
