"""The page as a file; what its script does is in test_page_browser.py."""

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from sightline.report.page import render_index, render_page, script
from sightline.report.page_data import index_entry

# Elements that never end; all others must.
VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """Elements with their attributes and text; an error for elements that are not nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
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
    return Page(render_page(make_report()))


def test_nothing_is_asked_of_the_network(page: Page) -> None:
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "data:").startswith("data:")
    assert "url(" not in page.html
    assert "@import" not in page.html
    assert not re.search(r"https?://", page.html)


def test_its_policy_runs_its_own_script_and_style_only(page: Page) -> None:
    ((policy, _),) = page.of("meta", **{"http-equiv": "Content-Security-Policy"})
    (running,) = [text for attributes, text in page.of("script") if not attributes]
    ((_, style),) = page.of("style")
    hashes = [
        "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, running)
    ]
    assert policy["content"] == (
        f"default-src 'none'; img-src data:; style-src '{hashes[0]}'; script-src '{hashes[1]}'"
    )
    assert "unsafe-inline" not in page.html


def test_the_script_never_reads_text_as_html() -> None:
    for danger in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert danger not in script()


def test_without_a_script_there_is_the_caption_and_its_verdict(page: Page) -> None:
    ((_, text),) = page.of("noscript")
    assert text.startswith("a cat sleeps1 of 2 checked words is seen in the picture; ")
    assert "JavaScript" in text


def test_text_is_never_markup(make_report) -> None:
    wicked = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "<!--")
    report = make_report(said=wicked, other="{{data}}", name="<b>&amp;.jpg")
    page = Page(render_page(report))
    assert len(page.of("script")) == 2
    assert not page.of("img")
    assert not page.of("b")
    assert [word["text"] for word in page.data["words"]] == [*wicked, "{{data}}"]
    assert page.of("title")[0][1] == f"{' '.join(wicked)} · <b>&amp;.jpg"
    index = Page(render_index([index_entry(report, 'a"><b>.html')]))
    assert len(index.of("script")) == 2
    assert not index.of("b")
    assert index.of("a")[0][0]["href"] == 'a"><b>.html'


def test_a_name_that_is_no_text_can_be_written(make_report) -> None:
    report = make_report(name=os.fsdecode(b"caf\xe9.jpg"))
    assert render_page(report).encode("utf-8")
    assert render_index([index_entry(report, "cafe.html")]).encode("utf-8")


def test_a_page_stays_below_a_megabyte(make_report) -> None:
    """Fifteen words by four methods, of noise, which does not compress; and so is the picture."""
    said = tuple("abcdefghijklmno")
    report = make_report(
        methods=("lrp", "grad_cam", "gradient_input", "occlusion"), said=said, checked=False
    )
    noise = np.random.default_rng(0).normal(size=(768, 1024)).astype(np.float32)
    grain = np.random.default_rng(1).integers(0, 256, (768, 1024, 3), np.uint8)
    for why in report.explanations:
        object.__setattr__(why, "heatmap", noise)
    object.__setattr__(report, "picture", Image.fromarray(grain))
    assert len(render_page(report)) < 1_000_000


def test_the_index_lists_every_page(make_report) -> None:
    entries = [index_entry(make_report(name=name), f"{name}.html") for name in ("one", "two")]
    page = Page(render_index(entries))
    assert page.of("title")[0][1] == "Captions of 2 pictures"
    assert [attributes["href"] for attributes, _ in page.of("a")] == ["one.html", "two.html"]
    assert [entry["name"] for entry in page.data["pictures"]] == ["one", "two"]
