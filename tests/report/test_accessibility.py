"""Pages are checked by axe, the field's checker of what screen readers need, in a browser."""

import pytest

from axe import violations
from sightline.captions import UnknownWord
from sightline.report.page import render_index, render_page
from sightline.report.page_data import index_entry

pytestmark = [pytest.mark.browser, pytest.mark.network, pytest.mark.xdist_group("browser")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280, 3840])
def test_a_page_has_no_violations(make_report, visit, axe, theme: str, width: int) -> None:
    report = make_report(
        readers_own=True,
        unknown=(UnknownWord("wolf", "dog", "meaning"),),
        unfamiliar=True,
    )
    page = visit(render_page(report, index="index.html"), width, 800, theme)
    assert violations(page, axe) == []
    page.locator("button.word").nth(2).click()
    page.mouse.move(1, 1)
    page.locator("#numbers summary").click()
    page.locator(".view summary").click()
    assert violations(page, axe) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280, 3840])
def test_the_index_has_no_violations(make_report, visit, axe, theme: str, width: int) -> None:
    reports = [make_report(), make_report(unfamiliar=True), make_report(checked=False)]
    page = visit(
        render_index([index_entry(report, f"{n}.html") for n, report in enumerate(reports)]),
        *(width, 800, theme),
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, axe) == []


def test_it_finds_what_is_wrong(visit, axe) -> None:
    wrong = "<!doctype html><title>x</title><img src='data:,'><p style='color:#eee'>pale</p>"
    page = visit("<!doctype html><html lang='en'><title>x</title><main></main></html>")
    page.set_content(wrong)
    page.evaluate(axe)
    broken = page.evaluate("axe.run()")["violations"]
    assert {"image-alt", "color-contrast"} <= {one["id"] for one in broken}
