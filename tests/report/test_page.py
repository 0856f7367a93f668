"""The page, read as a browser reads it; what its script does is in test_page_script.py."""

import base64
import dataclasses
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from sightline.report.page import render_page
from sightline.report.report import Report

# Elements that never end; all others must.
VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """Elements with their attributes and text; an error for elements that are not nested."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.html = render_page(report)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(self.html)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.text[len(self.elements) - 1] = ""
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for number in self._open:
            self.text[number] += data

    def of(self, tag: str, **attributes: str) -> list[tuple[dict[str, str], str]]:
        return [
            (actual, self.text[number])
            for number, (name, actual) in enumerate(self.elements)
            if name == tag and attributes.items() <= actual.items()
        ]

    @property
    def data(self) -> dict:
        ((_, text),) = self.of("script", type="application/json")
        return json.loads(text)


@pytest.fixture
def page(make_report) -> Page:
    return Page(make_report())


def test_nothing_is_asked_of_the_network(page: Page) -> None:
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "data:").startswith("data:")
    ((policy, _),) = page.of("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; img-src data:;")
    assert "url(" not in page.html
    assert "@import" not in page.html
    assert not re.search(r"https?://", page.html)


def test_whatever_refers_to_an_element_finds_it(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
            assert set(attributes.get(name, "").split()) <= set(ids)
    ((_, script),) = [element for element in page.of("script") if not element[0]]
    sought = re.findall(r'(?:find|getElementById)\("(\w+)"\)', script)
    assert len(set(sought)) > 8
    assert set(sought) <= set(ids)
    assert "{{" not in page.html


def test_words_are_buttons_with_their_verdict_in_words_marks_and_classes(page: Page) -> None:
    buttons = page.of("button", type="button")
    assert [(attributes["class"], text) for attributes, text in buttons] == [
        ("word", "a"),
        ("word seen", "✓cat, seen"),
        ("word unsupported", "✗sleeps, not supported"),
        ("word other", "dog"),
    ]
    assert all(attributes["aria-pressed"] == "false" for attributes, _ in buttons)
    ((_, css),) = page.of("style")
    for look in (".word.seen", ".word.doubtful", ".word.unsupported"):
        assert look in css
    assert "✓ seen, ? doubtful, ✗ not supported" in page.html


def test_words_that_were_not_checked_are_plain(make_report) -> None:
    page = Page(make_report(checked=False))
    assert [attributes["class"] for attributes, _ in page.of("button")] == ["word"] * 3 + [
        "word other"
    ]
    assert "doubtful," not in page.html
    assert all(word["support"] is None for word in page.data["words"])


def test_every_word_has_its_numbers(page: Page) -> None:
    words = page.data["words"]
    assert [word["heading"] for word in words] == [
        "“a”",
        "“cat”",
        "“sleeps”",
        "Why not “dog”?",
    ]
    assert words[1]["likelihood"] == "Probability: 40 %."
    assert words[1]["alternatives"] == [
        {"name": "bird", "length": 0.2, "number": "20 %", "sign": None},
        {"name": "(end)", "length": 0.001, "number": "0.1 %", "sign": None},
    ]
    assert words[1]["support"] == {
        "style": "seen",
        "text": "✓ Seen: support 0.90",
        "evidence": "Based on occlusion 0.80.",
    }
    assert words[3]["likelihood"] == (
        "Probability as word 2, instead of “cat” (40 %): 30 %. It is most likely at this position."
    )
    assert (words[3]["place"], words[3]["said"]) == (1, False)


def test_an_unsaid_word_at_a_place_one_asked_for(make_report) -> None:
    report = make_report()
    (other,) = report.counterfactuals
    for place, says in ((2, "instead of “sleeps” (40 %)"), (3, "after the last word")):
        moved = dataclasses.replace(
            other, place=place, word=dataclasses.replace(other.word, log_probability=-3.5)
        )
        kept = tuple(why for why in report.explanations if why.word != "dog")
        page = Page(dataclasses.replace(report, counterfactuals=(moved,), explanations=kept))
        assert page.data["words"][3]["likelihood"] == (
            f"Probability as word {place + 1}, {says}: 3 %."
        )


def test_every_explanation_has_its_map_its_shares_and_its_sum(page: Page) -> None:
    explanations = page.data["explanations"]
    assert [(why["method"], why["word"]) for why in explanations] == [
        (method, word) for method in ("lrp", "attention") for word in range(4)
    ]
    why = explanations[2]
    levels = np.asarray(Image.open(io.BytesIO(base64.b64decode(why["map"].split(",")[1]))))
    assert levels.shape == (40, 60)
    assert (levels[:, :30] == 255).all()
    assert (levels[:, 30:] == 128 - 64).all()
    assert why["underlines"] == [0.5, -1, 0.25]
    assert [(row["name"], row["number"], row["sign"]) for row in why["before"]] == [
        ("(start)", "+0.5", "for"),
        ("a", "-1", "against"),
        ("cat", "+0.25", "for"),
    ]
    # Of the picture 3 - 1.5, of the words -0.25.
    assert [row["number"] for row in why["shares"]] == ["86 %", "14 %"]
    numbers = [float(row["number"]) for row in why["parts"]]
    assert numbers == [1.5, -0.25, 0.25, 0, 1.5]
    assert "parts" not in explanations[6]  # attention adds up to nothing
    assert "shares" not in explanations[6]
    assert [method["name"] for method in page.data["methods"]] == ["lrp", "attention"]
    radios = page.of("input", type="radio", name="method")
    assert ["checked" in attributes for attributes, _ in radios] == [True, False]


def test_what_is_shown_first(make_report) -> None:
    report = make_report()
    assert Page(report).data["first"] == 3  # what was asked for
    alone = tuple(why for why in report.explanations if why.word != "dog")
    said = Page(dataclasses.replace(report, counterfactuals=(), explanations=alone)).data
    # The picture's share of the first three words: 0.5 of 1, 1 of 1.5, 1.5 of 1.75.
    assert said["first"] == 2
    louder = tuple(
        dataclasses.replace(why, words=0 * why.words) if why.word == "a" else why for why in alone
    )
    assert louder[0].image_share == 1  # but "a" is nothing to be seen
    assert (
        Page(dataclasses.replace(report, counterfactuals=(), explanations=louder)).data["first"]
        == 2
    )
    some = tuple(why for why in alone if why.word == "cat")
    assert (
        Page(dataclasses.replace(report, counterfactuals=(), explanations=some)).data["first"] == 1
    )


def test_text_is_never_markup(make_report) -> None:
    wicked = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "<!--")
    page = Page(make_report(said=wicked, other="{{data}}", name="<b>&amp;.jpg"))
    assert len(page.of("script")) == 2
    assert len(page.of("img")) == 1
    assert not page.of("b")
    texts = [text for _, text in page.of("button")]
    assert texts[0] == wicked[0]
    assert texts[3] == "{{data}}"
    assert page.data["words"][2]["heading"] == "“<!--”"
    assert page.of("title")[0][1] == f"{' '.join(wicked)} · <b>&amp;.jpg"
    assert page.of("img")[0][0]["alt"].endswith(" ".join(wicked))


def test_it_stays_small(make_report) -> None:
    """Of twelve words by two methods that reach the pixels: noise, which does not compress."""
    report = make_report(methods=("lrp",), said=tuple("abcdefghijkl"), checked=False)
    noise = np.random.default_rng(0).normal(size=(768, 1024)).astype(np.float32)
    explanations = tuple(
        dataclasses.replace(why, picture=noise, method=method)
        for method in ("lrp", "guided_grad_cam")
        for why in report.explanations[:12]
    )
    page = render_page(dataclasses.replace(report, explanations=explanations))
    assert len(page) < 1_500_000
