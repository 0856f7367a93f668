"""What pages are made from: plain JSON, with every sentence in it."""

import base64
import dataclasses
import io
import json

import numpy as np
import pytest
from PIL import Image

from sightline.captions import Support, UnknownWord
from sightline.report.benchmark import describe_method
from sightline.report.page_data import index_data, index_entry, page_data


def pixels(uri: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))))


def test_it_is_json_and_says_what_the_first_screen_shows(make_report) -> None:
    data = json.loads(json.dumps(page_data(make_report())))
    assert pixels(data["picture"]["source"]).shape == (40, 60, 3)
    assert data["caption"] == {
        "text": "a cat sleeps",
        "readers_own": False,
        "verdict": "1 of 2 checked words is seen in the picture; “sleeps” is not.",
        "tone": "unsupported",
    }
    assert [(word["text"], word["kind"], word["verdict"]) for word in data["words"]] == [
        ("a", "said", None),
        ("cat", "said", "seen"),
        ("sleeps", "said", "not supported"),
        ("dog", "unsaid", None),
    ]
    assert data["unfamiliar"] is None
    assert data["command"] == "sightline explain photo.jpg"


def test_every_explanation_has_its_map_and_its_sentence(make_report) -> None:
    data = page_data(make_report())
    explanations = data["explanations"]
    assert [(why["method"], why["word"]) for why in explanations] == [
        (method, word) for method in ("lrp", "attention") for word in range(4)
    ]
    why = explanations[2]
    levels = pixels(why["map"])
    assert levels.shape == (40, 60)
    assert (levels[:, :30] == 255).all()
    assert (levels[:, 30:] == 128 - 64).all()
    assert (why["image"], why["previous"]) == (1.5, [0.5, -1, 0.25])
    assert why["why"].startswith("Said ")
    assert [method["adds_up"] for method in data["methods"]] == [True, False]
    assert [method["signed"] for method in data["methods"]] == [True, False]
    assert explanations[3]["why"].startswith("“dog” had 30 % as word 2, where it was likeliest")


def test_methods_come_with_what_the_benchmark_says(make_report) -> None:
    data = page_data(make_report())
    lrp, attention = data["methods"]
    assert (lrp["label"], attention["label"]) == ("LRP", "Attention")
    assert lrp["benchmark"] == describe_method("lrp")
    assert attention["benchmark"] == describe_method("attention") != lrp["benchmark"]
    assert "Flickr8k" in data["benchmark"]
    report = make_report(methods=("occlusion",))
    assert page_data(report)["methods"][0]["benchmark"] == "Not measured for that captioner."


def test_words_that_were_not_checked_say_so(make_report) -> None:
    data = page_data(make_report(checked=False))
    assert data["caption"]["tone"] == "unchecked"
    assert data["caption"]["verdict"] == "Its words were not checked against the picture."
    assert all(word["support"] is None for word in data["words"])


def test_an_unknown_word_of_ones_own_caption_is_marked_and_the_rest_explained(make_report) -> None:
    unknown = (UnknownWord("sleeps", "dog", "meaning"),)
    data = page_data(make_report(readers_own=True, unknown=unknown))
    assert data["caption"]["readers_own"]
    strange = data["words"][2]
    assert (strange["kind"], strange["verdict"], strange["numbers"]) == ("unknown", None, [])
    assert strange["otherwise"] == (
        "“sleeps” is not among its 5 words; the nearest that it knows is “dog”. "
        "It was read as an unknown word, and is not explained."
    )
    assert {why["word"] for why in data["explanations"]} == {0, 1, 3}


def test_a_word_that_stands_in_for_an_unknown_one_says_so(make_report) -> None:
    data = page_data(make_report(unknown=(UnknownWord("wolf", "dog", "meaning"),)))
    assert data["words"][3]["otherwise"] == (
        "“wolf” is not among its 5 words; the nearest that it knows is “dog”."
    )
    assert data["unknown"][0]["nearest"] == "dog"


def test_it_knows_where_each_word_was_likeliest(make_report) -> None:
    vocabulary = page_data(make_report())["vocabulary"]
    assert vocabulary["words"] == "a bird dog horn zoo"
    assert vocabulary["count"] == 5
    assert vocabulary["chances"]["horn"] == [3, "1 %"]
    assert "zoo" not in vocabulary["chances"]  # hardly any


def test_featured_words_can_be_seen_and_take_most_of_the_picture(make_report) -> None:
    report = make_report()
    # The picture's share of the three words: 0.5 of 1, 1 of 1.5, 1.5 of 1.75.
    assert page_data(report)["featured"] == [2, 1, 0]
    louder = tuple(
        dataclasses.replace(why, words=0 * why.words) if why.word == "a" else why
        for why in report.explanations
    )
    assert louder[0].image_share == 1  # but "a" is nothing to be seen
    assert page_data(dataclasses.replace(report, explanations=louder))["featured"] == [2, 1, 0]
    asked = tuple(why for why in report.explanations if why.word == "dog")
    assert page_data(dataclasses.replace(report, explanations=asked))["featured"] == [0]


def test_a_large_picture_fits(make_report) -> None:
    grain = np.random.default_rng(0).integers(0, 256, (700, 1024, 3), np.uint8)
    smooth = Image.linear_gradient("L").resize((1024, 700)).convert("RGB")
    report = make_report()
    sizes = [
        len(page_data(dataclasses.replace(report, picture=picture))["picture"]["source"])
        for picture in (Image.fromarray(grain), smooth)
    ]
    assert sizes[0] < 500_000
    assert sizes[1] < 50_000


def test_an_index_has_the_worst_first(make_report) -> None:
    def entry(name: str, *supports: tuple[str, float], unfamiliar: bool | None = None) -> dict:
        report = make_report(name=name, unfamiliar=unfamiliar)
        words = tuple(
            dataclasses.replace(word, support=Support(score, verdict, {}))
            for word, (verdict, score) in zip(report.caption.words, supports, strict=False)
        )
        caption = dataclasses.replace(report.caption, words=words)
        return index_entry(dataclasses.replace(report, caption=caption), f"{name}.html")

    entries = [
        entry("good", ("seen", 0.9), ("seen", 0.95)),
        entry("better", ("seen", 0.99), ("seen", 0.95)),
        entry("doubtful", ("seen", 0.9), ("doubtful", 0.4)),
        entry("bad", ("not supported", 0.1), ("seen", 0.9)),
        entry("worse", ("not supported", 0.2), ("doubtful", 0.5)),
        entry("strange", ("seen", 0.9), unfamiliar=True),
    ]
    pictures = index_data(entries)["pictures"]
    assert [picture["name"] for picture in pictures] == [
        *("strange", "worse", "bad", "doubtful", "good", "better")
    ]
    tones = [picture["tone"] for picture in pictures]
    assert tones == ["seen", "unsupported", "unsupported", "doubtful", "seen", "seen"]
    assert pixels(pictures[0]["thumbnail"]).shape == (40, 60, 3)
    assert pictures[1]["words"][0] == {"text": "a", "verdict": "not supported", "known": True}


@pytest.mark.parametrize("name", ["my photo.jpg", "it's.jpg"])
def test_the_command_can_be_pasted(make_report, name: str) -> None:
    import shlex

    assert shlex.split(page_data(make_report(name=name))["command"])[-1] == name


def whys(report) -> dict[tuple[str, str], str]:
    data = page_data(report)
    return {
        (why["method"], data["words"][why["word"]]["text"]): why["why"]
        for why in data["explanations"]
    }


def test_a_word_is_said_because_of_the_thing_that_its_map_shows(make_report) -> None:
    report = make_report()  # all maps are at the left; “cat” is seen, “sleeps” is not
    said = whys(report)
    assert said["lrp", "sleeps"] == (
        "Said mostly because of the “cat” at the top left of the picture."
    )
    assert "what is at the top left" in said["lrp", "cat"]  # itself
    assert "cat" not in said["attention", "sleeps"]  # it does not add up
    unchecked = whys(make_report(checked=False))
    assert "what is at the top left" in unchecked["lrp", "sleeps"]


def test_no_thing_is_named_that_the_map_does_not_show(make_report) -> None:
    report = make_report()
    elsewhere = tuple(
        dataclasses.replace(why, heatmap=-why.heatmap) if why.word == "cat" else why
        for why in report.explanations
    )
    said = whys(dataclasses.replace(report, explanations=elsewhere))
    assert "what is at the top left" in said["lrp", "sleeps"]
    # Nor one of two that it shows alike.
    both = tuple(
        dataclasses.replace(word, support=report.caption.words[1].support) if place == 0 else word
        for place, word in enumerate(make_report(said=("dog", "cat", "sleeps")).caption.words)
    )
    two = make_report(said=("dog", "cat", "sleeps"), other="bird")
    two = dataclasses.replace(two, caption=dataclasses.replace(two.caption, words=both))
    assert "what is at the top left" in whys(two)["lrp", "sleeps"]
