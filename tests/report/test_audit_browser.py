"""The report of an audit, in a browser: what it shows, filters, and draws to scale."""

import pytest

from sightline.report.page import render_audit

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def word(text: str, verdict: str | None) -> dict:
    return {"text": text, "verdict": verdict, "note": verdict}


def picture(number: int, words: list[dict], page: str | None = None) -> dict:
    caption = {"system": 0, "text": " ".join(w["text"] for w in words), "words": words}
    shown = {"thumbnail": "data:image/gif;base64,R0lGODlhAQABAAAAACw=", "width": 4, "height": 3}
    return {
        **shown,
        "number": number,
        "name": f"{number}.jpg",
        "page": page,
        "unfamiliar": False,
        "captions": [{**caption, "note": None}],
        "references": [],
    }


@pytest.fixture
def document() -> dict:
    counts = {"words": 4, "seen": 1, "doubtful": 1, "not supported": 1, "unknown": 1}
    bins = [{"low": 0.5, "high": 0.6, "words": 9, "support": 0.5, "right": 0.25}]
    made_up = {"text": "bus", "kind": "object", "said": 1, "unsupported": 1}
    system = {
        **counts,
        "name": "vendor",
        "sentence": "2 captions.",
        "metrics": {},
        "kinds": [{"kind": "object", **counts}],
        "made_up": [{**made_up, "instead": ["cup"], "examples": [[7, 0]]}],
        "unknown_words": [{"text": "espresso", "read_as": "coffee", "said": 2}],
        "calibration": None,
    }
    return {
        "title": "Audit of <vendor>",
        "headline": "1 of 2.",
        "notes": [],
        "judge": {"name": "tiny", "words": 10, "calibration": bins},
        "systems": [system],
        "comparison": [],
        "comparison_note": "",
        "calibration_note": "Of words …",
        "problems": [{"picture": "x.jpg", "why": "there is no such picture"}],
        "audited": 2,
        "pictures": [
            picture(7, [word("a", None), word("bus", "not supported")], "pages/7.html"),
            picture(3, [word("an", None), word("espresso", "unknown"), word("cup", "seen")]),
        ],
    }


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_it_shows_the_audit_and_fits_the_screen(visit, document, width, theme) -> None:
    page = visit(render_audit(document), width=width, theme=theme)
    assert page.locator("h1").inner_text() == "Audit of <vendor>"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".gallery a").first.get_attribute("href") == "pages/7.html"
    assert page.locator(".gallery .word.unsupported .text").all_inner_texts() == ["bus"]
    assert page.locator(".gallery .word.unknown-word .text").all_inner_texts() == ["espresso"]
    assert page.locator("a[href='#picture-7']").count() == 1
    column, bar = (
        page.locator(f".bins {part}").bounding_box() for part in (".column", ".bar-right")
    )
    assert bar["height"] == pytest.approx(column["height"] / 4, abs=1)


def test_it_shows_some_of_the_captions(visit, document) -> None:
    page = visit(render_audit(document))
    page.get_by_label("With unknown words (1)").check()
    assert page.locator(".gallery li").count() == 1
    assert page.locator("#picture-3").count() == 1
    page.get_by_label("All (2)").check()
    page.locator("#search").fill("bus")
    assert page.locator("#count").inner_text().startswith("1 of the 2 worst pictures")
