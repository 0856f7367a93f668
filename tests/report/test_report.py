"""Everything that explains a caption, gathered from a captioner."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

import sightline
from sightline.errors import ConfigError
from sightline.report.report import DEFAULT_METHODS, Report
from sightline.support.word_detector import WordDetector
from sightline.text.stemmer import stem


@pytest.fixture(scope="module")
def captioner(checkpoint):
    return sightline.load(checkpoint)


@pytest.fixture(scope="module")
def report(captioner, examples) -> Report:
    return captioner.report(examples / "cat.jpg", caption="a cat on a table", why_not=[("cup", 2)])


def test_every_word_by_every_method(report: Report) -> None:
    assert report.name == "cat.jpg"
    assert report.methods == DEFAULT_METHODS
    asked = [(0, "a"), (1, "cat"), (2, "on"), (3, "a"), (4, "table"), (2, "cup")]
    assert [(why.place, why.word) for why in report.explanations] == asked * len(DEFAULT_METHODS)
    assert all(why.heatmap.shape == (300, 451) for why in report.explanations)
    assert report.caption.picture is report.picture


def test_json_holds_it_all_and_boxes_once(report: Report) -> None:
    content = json.loads(json.dumps(report.to_json()))
    assert content["picture"] == {"name": "cat.jpg", "width": 451, "height": 300}
    assert content["caption"] == report.caption.to_json()
    assert len(content["caption"]["boxes"]) == 16
    (other,) = content["unsaid"]
    assert (other["text"], other["place"], len(other["everywhere"])) == ("cup", 2, 6)
    first = content["explanations"][1]
    assert (first["method"], first["word"], first["place"]) == ("contrastive_lrp", "cat", 1)
    parts = [first[name] for name in ("image", "language", "bias", "epsilon", "remainder")]
    assert sum(parts) == pytest.approx(first["total"], abs=1e-5)
    assert sum(first["regions"]) == pytest.approx(first["image"], abs=1e-5)
    assert [word["text"] for word in first["previous"]] == ["<start>", "a"]
    assert sum(word["relevance"] for word in first["previous"]) == pytest.approx(first["language"])
    assert "boxes" not in first
    assert report.explanations[1].to_json()["boxes"] == content["caption"]["boxes"]


def test_every_field_is_documented(report: Report) -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", page.split("## The JSON file")[1]))
    content = report.to_json()
    for part in (
        *(content, content["picture"], content["caption"], content["caption"]["words"][0]),
        *(content["unsaid"][0], content["explanations"][0]),
        content["explanations"][0]["previous"][0],
    ):
        assert set(part) <= documented


def test_words_are_found_wherever_the_caption_says_them(captioner, examples) -> None:
    given = {"caption": "a cat on a table", "methods": ["attention"]}
    some = captioner.report(examples / "cat.jpg", words=["table", "a"], **given)
    assert [(why.place, why.word) for why in some.explanations] == [
        (0, "a"),
        (3, "a"),
        (4, "table"),
    ]
    with pytest.raises(ConfigError, match="'a cat on a table' does not say 'cup'"):
        captioner.report(examples / "cat.jpg", words=["cup"], **given)
    with pytest.raises(ConfigError, match="no word to explain"):
        captioner.report(examples / "cat.jpg", words=[], **given)


def test_a_large_picture_is_shown_smaller_and_captioned_as_it_is(captioner, examples, tmp_path):
    Image.open(examples / "cat.jpg").resize((1503, 1000)).save(tmp_path / "large.png")
    report = captioner.report(
        tmp_path / "large.png", words=["a"], caption="a cat", methods=["attention"]
    )
    assert report.picture.size == (1024, 681)
    assert report.explanations[0].heatmap.shape == (681, 1024)
    told = captioner.read(tmp_path / "large.png", "a cat")
    assert report.caption.log_probability == told.log_probability


def test_a_word_is_likeliest_where_a_counterfactual_says_so(captioner, examples, report) -> None:
    assert list(report.likeliest) == list(captioner.vocabulary.words[4:])
    for word in ("cup", "coffee", "red"):
        other = captioner.counterfactual(examples / "cat.jpg", report.caption, word)
        place, log_probability = report.likeliest[word]
        assert (place, log_probability) == (
            other.place,
            pytest.approx(max(other.everywhere), abs=1e-4),
        )


def test_ones_own_caption_may_have_unknown_words(captioner, examples) -> None:
    picture = captioner.encode(examples / "cat.jpg")
    given = {"caption": "A zebra on the table.", "methods": ["attention", "lrp"]}
    own = captioner.report(picture, why_not=[("mug", None), ("table", None)], **given)
    assert own.readers_own
    assert own.caption.text == "a zebra on the table"
    assert [(each.text, each.nearest) for each in own.unknown] == [("zebra", None), ("mug", "cup")]
    assert [(each.place, each.word.text) for each in own.counterfactuals] == [
        (own.likeliest["cup"][0], "cup")  # "table" is in the caption
    ]
    explained = {why.place for why in own.explanations if why.word != "cup"}
    assert explained == {0, 2, 3, 4}
    # The others are what they are after <unknown>.
    table = next(why for why in own.explanations if (why.method, why.word) == ("lrp", "table"))
    assert table.previous == ("<start>", "a", "<unknown>", "on", "the")
    assert not captioner.report(picture, methods=["attention"]).readers_own


def test_unknown_words_are_read_as_their_nearest(captioner, examples) -> None:
    picture = captioner.encode(examples / "cat.jpg")
    read = captioner.read(picture, "a zebra beside the mug")
    assert [word.text for word in read.words] == ["a", "zebra", "beside", "the", "mug"]
    assert [word.read_as for word in read.words] == [None, "<unknown>", "<unknown>", None, "cup"]
    assert read.given
    assert not captioner.caption(picture).given
    known = captioner.read(picture, "a red cup")
    meant = captioner.read(picture, "a red mug")
    assert [w.log_probability for w in meant.words] == [w.log_probability for w in known.words]
    assert meant.text == "a red mug"
    assert meant.words[2].read_as == "cup"
    assert all(word.read_as == "<unknown>" for word in captioner.read(picture, "big zebras").words)


def test_the_support_of_an_unknown_word_is_that_of_its_nearest(fitted_checkpoint, examples) -> None:
    captioner = sightline.load(fitted_checkpoint)
    picture = captioner.encode(examples / "cat.jpg")
    known, meant = (
        captioner.check(picture, captioner.read(picture, f"a red {cup}")) for cup in ("cup", "mug")
    )
    assert known.words[2].support == meant.words[2].support
    assert "cup" in [word.text for word in known.unsupported]
    assert "mug" not in [word.text for word in meant.unsupported]  # it is counted apart


def test_an_unknown_word_is_not_checked(fitted_checkpoint, examples) -> None:
    captioner = sightline.load(fitted_checkpoint)
    own = captioner.report(
        examples / "cat.jpg", caption="a zebra on the table", methods=["attention"]
    )
    checked = [word.text for word in own.caption.words if word.support is not None]
    assert checked == ["table"]


def test_a_picture_is_as_unfamiliar_whoever_wrote_its_caption(fitted_checkpoint, examples) -> None:
    captioner = sightline.load(fitted_checkpoint)
    picture = captioner.encode(examples / "cat.jpg")
    stems = tuple({stem(word) for word in captioner.vocabulary.words})
    nothing = [torch.zeros(len(stems)), torch.zeros(1, 224), torch.zeros(1)]
    detector = WordDetector(stems, *nothing, torch.zeros(len(stems), 1), torch.zeros(len(stems)))
    for unsure, unfamiliar in ((-1.0, False), (1.0, True)):  # all log-odds are zero
        captioner.support_classifier = dataclasses.replace(
            captioner.support_classifier, detector=detector, unsure=unsure
        )
        assert captioner.caption(picture).unfamiliar is unfamiliar
        for caption in ("a cat on a table", None):
            report = captioner.report(picture, caption=caption, methods=("attention",))
            assert report.caption.unfamiliar is unfamiliar
            assert bool(report.unfamiliar) is unfamiliar
