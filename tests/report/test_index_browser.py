"""The index over several pictures, in a browser."""

import dataclasses

import pytest

from sightline.captions import Support
from sightline.report.page import render_index
from sightline.report.page_data import index_entry

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def page(make_report, visit):
    def entry(name: str, said: tuple[str, ...], verdict: str, **fields) -> dict:
        report = make_report(name=name, said=said, **fields)
        words = tuple(
            dataclasses.replace(word, support=Support(0.5, verdict, {}) if place == 1 else None)
            for place, word in enumerate(report.caption.words)
        )
        caption = dataclasses.replace(report.caption, words=words)
        return index_entry(dataclasses.replace(report, caption=caption), f"{name}.html")

    return visit(
        render_index(
            [
                entry("picture-10", ("a", "cat", "sleeps"), "seen"),
                entry("picture-9", ("a", "dog", "runs"), "not supported"),
                entry("picture-2", ("a", "bird", "sings"), "doubtful", readers_own=True),
                entry("picture-1", ("a", "fish", "swims"), "seen", unfamiliar=True),
            ]
        )
    )


def names(page) -> list[str]:
    return page.locator(".entry > .quiet").all_inner_texts()


def test_it_opens_on_all_pictures_the_worst_first(page) -> None:
    assert names(page) == ["picture-1", "picture-9", "picture-2", "picture-10"]
    assert page.locator("#count").inner_text() == "4 of 4 pictures"
    entry = page.locator(".entry").nth(1)
    assert entry.get_attribute("href") == "picture-9.html"
    assert entry.locator("img").evaluate("(img) => img.complete && img.naturalWidth") == 60
    assert "The one checked word, “dog”, is not seen in the picture." in entry.inner_text()
    assert "does not know pictures like this" in page.locator(".entry").nth(0).inner_text()
    assert "Your own caption" in page.locator(".entry").nth(2).inner_text()


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("With words not supported (1)", ["picture-9"]),
        ("With doubtful words (1)", ["picture-2"]),
        ("Everything seen (2)", ["picture-1", "picture-10"]),
        ("Unfamiliar pictures (1)", ["picture-1"]),
    ],
)
def test_filters(page, kind: str, shown: list[str]) -> None:
    page.get_by_label(kind).check()
    assert names(page) == shown
    assert page.locator("#count").inner_text() == f"{len(shown)} of 4 pictures"
    page.get_by_label("All (4)").check()
    assert len(names(page)) == 4
    assert page.get_by_label("Not checked").count() == 0  # there are none


def test_order(page) -> None:
    page.get_by_label("Order").select_option("best")
    assert names(page) == ["picture-10", "picture-2", "picture-9", "picture-1"]
    page.get_by_label("Order").select_option("name")
    assert names(page) == ["picture-1", "picture-2", "picture-9", "picture-10"]


def test_finding_words_and_names(page) -> None:
    page.get_by_label("Find").fill("DOG")
    assert names(page) == ["picture-9"]
    page.get_by_label("Find").fill("picture-1")
    assert names(page) == ["picture-1", "picture-10"]
    page.get_by_label("Unfamiliar pictures").check()
    assert names(page) == ["picture-1"]


@pytest.mark.parametrize("width", [375, 3840])
def test_it_fits_every_width(page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
