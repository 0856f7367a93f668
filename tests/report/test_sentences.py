"""The page's sentences."""

import dataclasses
import math

import numpy as np
import pytest

from sightline.captions import Support, UnknownWord, Word
from sightline.report import sentences
from sightline.report.heatmaps import Heatmap, heatmap
from sightline.report.numbers import numbers_of_explanation, numbers_of_word

MIDDLE = Heatmap(np.float32([[0, 0, 0], [0, 1, 0], [0, 0, 0]]), 1.0)
SAID = ("a", "brown", "dog")


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ("", "Its words were not checked against the picture."),
        ("s", "The one checked word, “w0”, is seen in the picture."),
        ("d", "The one checked word, “w0”, is doubtful."),
        ("n", "The one checked word, “w0”, is not seen in the picture."),
        ("sss", "All 3 checked words are seen in the picture."),
        ("sssssn", "5 of 6 checked words are seen in the picture; “w5” is not."),
        ("sd", "1 of 2 checked words is seen in the picture; “w1” is doubtful."),
        ("snn", "1 of 3 checked words is seen in the picture; “w1” and “w2” are not."),
        (
            "sdn",
            "1 of 3 checked words is seen in the picture; “w1” is doubtful, and “w2” is not "
            "supported.",
        ),
        (
            "ddnn",
            "None of 4 checked words is clearly seen in the picture; “w0” and “w1” are doubtful, "
            "and “w2” and “w3” are not supported.",
        ),
    ],
)
def test_one_sentence_on_the_caption(make_report, verdicts: str, says: str) -> None:
    names = {"s": "seen", "d": "doubtful", "n": "not supported"}
    words = [
        Word(f"w{n}", -1.0, (), (), support=Support(0.5, names[letter], {}))
        for n, letter in enumerate(verdicts)
    ] + [Word("the", -1.0, (), ())]
    report = make_report()
    caption = dataclasses.replace(report.caption, words=tuple(words))
    assert sentences.verdict_of_caption(dataclasses.replace(report, caption=caption)) == says


@pytest.fixture
def explain(make_report):
    """An explanation of "dog" whose picture and previous words have the given relevance."""

    def make(image: float, previous: list[float], **fields):
        why = make_report(said=SAID).explanations[2]
        total = image + sum(previous)
        return dataclasses.replace(
            why,
            regions=np.float32([image, 0]),
            words=np.float32(previous),
            total=total,
            bias=0.0,
            **fields,
        )

    return make


@pytest.mark.parametrize(
    ("image", "previous", "says"),
    [
        (8, [0, 0, 1], "Said mostly because of what is in the middle of the picture."),
        (
            1,
            [0, 0.1, 0.9],
            "Said because of what is in the middle of the picture, and because it comes after "
            "“brown”.",
        ),
        (
            1,
            [0, 1, 8],
            "Said mostly because of the words before it, above all “brown”, less because of what "
            "is in the middle of the picture.",
        ),
        (
            1,
            [8, 0, 1],
            "Said mostly because of how captions usually go on, less because of what is in the "
            "middle of the picture.",
        ),
        (
            -1,
            [0, 0, 8],
            "Said because of the words before it, above all “brown”, although the picture as a "
            "whole speaks against it.",
        ),
        (1, [0, 0, -1], "Said mostly because of what is in the middle of the picture."),
    ],
)
def test_why_a_word_was_said(explain, image: float, previous: list[float], says: str) -> None:
    assert sentences.why_said(explain(image, previous), MIDDLE, SAID) == says


def test_a_first_word_follows_no_word(explain) -> None:
    why = dataclasses.replace(
        explain(0.5, [0.5]), place=0, previous=("<start>",), word="a", total=1.0
    )
    assert sentences.why_said(why, MIDDLE, SAID) == (
        "Said because of what is in the middle of the picture, and because captions often begin "
        "with it."
    )


def test_methods_that_do_not_add_up_claim_no_shares(explain) -> None:
    other = dataclasses.replace(explain(8, [0, 0, 1]), method="grad_cam", total=100.0)
    assert sentences.why_said(other, MIDDLE, SAID) == (
        "Grad-CAM: what is in the middle of the picture counts most."
    )
    looked = dataclasses.replace(other, method="attention")
    assert sentences.why_said(looked, MIDDLE, SAID) == (
        "The captioner looked most at what is in the middle of the picture."
    )
    assert [row["name"] for row in numbers_of_explanation(other)] == ["score"]


def test_why_a_word_was_not_said(make_report) -> None:
    report = make_report()
    why, (other,) = report.explanations[3], report.counterfactuals
    shown = heatmap(why, 60)
    assert sentences.why_unsaid(why, shown, other, report.caption.words) == (
        "“dog” had 30 % as word 2, where it was likeliest; “cat” had 40 % and was said. "
        "For it speaks what is at the top left of the picture, against it what is at the top "
        "right of the picture."
    )
    last = dataclasses.replace(
        other, place=3, word=dataclasses.replace(other.word, log_probability=math.log(0.03))
    )
    assert sentences.why_unsaid(why, shown, last, report.caption.words).startswith(
        "“dog” had 3 % as word 4, where the caption ends. For it"
    )
    nothing = Heatmap(np.zeros((3, 3), np.float32), 1.0)
    assert "Nothing in the picture speaks for it." in sentences.why_unsaid(
        why, nothing, other, report.caption.words
    )


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ({"other_picture": 0.1}, "it would be said of other pictures nearly as readily"),
        ({"other_picture": 0.4, "blank": 0.0}, "of an empty picture nearly as readily"),
        ({"blank": 0.4, "occlusion": 0.1}, "nearly as readily with what glows here hidden"),
        ({"other_picture": 0.4, "blank": 0.4, "occlusion": 0.4}, "weak evidence"),
        ({}, "weak evidence"),
    ],
)
def test_an_unsupported_word_says_how_that_agrees_with_what_glows(evidence, says: str) -> None:
    word = Word("ball", math.log(0.5), (), (), support=Support(0.1, "not supported", evidence))
    sentence = sentences.support_of_word(word)
    assert sentence is not None
    assert sentence.startswith("The picture does not support it: ")
    assert says in sentence
    doubtful = dataclasses.replace(word, support=Support(0.5, "doubtful", evidence))
    assert "may or may not support it" in str(sentences.support_of_word(doubtful))


def test_support_of_other_words() -> None:
    word = Word("ball", -1.0, (), ())
    assert sentences.support_of_word(word) is None
    seen = dataclasses.replace(word, support=Support(0.9, "seen", {}))
    assert sentences.support_of_word(seen) == "The picture supports it."


def test_what_it_would_have_said_otherwise() -> None:
    alternatives = (("<unknown>", math.log(0.5)), ("cat", math.log(0.3)), ("<end>", -9.0))
    assert sentences.otherwise(Word("dog", math.log(0.2), alternatives, ())) == (
        "It would rather have said “cat” (30 %) than “dog” (20 %)."
    )
    assert sentences.otherwise(Word("dog", math.log(0.7), alternatives, ())) == (
        "Otherwise it would most likely have said “cat” (30 %)."
    )
    assert sentences.otherwise(Word("dog", math.log(0.7), alternatives[2:], ())) == (
        "Otherwise it would most likely have ended the caption (less than 0.1 %)."
    )
    assert sentences.otherwise(Word("dog", -1.0, (), ())) is None


def test_words_that_are_not_known() -> None:
    said = [
        sentences.unknown_word(UnknownWord("wrench", *near), 10_000)
        for near in (("hammer", "meaning"), ("bench", "spelling"), (None, None))
    ]
    assert said == [
        "“wrench” is not among its 10,000 words; the nearest that it knows is “hammer”.",
        "“wrench” is not among its 10,000 words; spelt most like it is “bench”.",
        "“wrench” is not among its 10,000 words; it knows none that is near.",
    ]


def test_every_number_has_a_meaning(make_report) -> None:
    report = make_report()
    word = dataclasses.replace(report.caption.words[1], signals={"beta": 0.5, "goal_0": 3.0})
    rows = numbers_of_word(word)
    assert [(row["name"], row["value"]) for row in rows] == [
        ("probability", "40 %"),
        ("beta", "0.50"),
        ("support", "90 %"),
        ("occlusion", "0.8"),
    ]
    assert all(row["meaning"] for row in rows)
    parts = {row["name"]: row["value"] for row in numbers_of_explanation(report.explanations[2])}
    # Of the picture 3 - 1.5, of the words -0.25, of constants 0.25.
    assert parts == {
        "score": "+1.50",
        "the picture": "+1.50",
        "previous words": "-0.25",
        "constants": "+0.25",
        "ε": "+0.00",
        "the heatmap": "+1.50",
        "absorbed by the encoder": "+0.00",
    }


def test_what_the_heatmap_adds_up_to_is_said(make_report) -> None:
    why = dataclasses.replace(make_report().explanations[2], encoder=0.4)
    rows = numbers_of_explanation(why)[-2:]
    assert [(row["name"], row["value"]) for row in rows] == [
        ("the heatmap", "+1.10"),
        ("absorbed by the encoder", "+0.40"),
    ]
    contrastive = numbers_of_explanation(dataclasses.replace(why, method="contrastive_lrp"))[-1]
    assert (contrastive["name"], contrastive["value"]) == ("claimed by previous words", "+0.40")
    assert "previous words rest on it" in contrastive["meaning"]
