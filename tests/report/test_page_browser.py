"""What a reader can do with a page, in a browser: only where there is one (Chromium or Chrome)."""

import dataclasses

import pytest

from sightline.captions import UNFAMILIAR, UnknownWord
from sightline.report.benchmark import describe_method
from sightline.report.page import render_page
from sightline.report.page_data import grown_data, page_data

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ORANGE, BLUE = [255, 128, 0], [30, 110, 255]


@pytest.fixture
def page(make_report, visit):
    return visit(render_page(make_report()))


def word(page, text: str):
    return page.locator("button.word", has=page.get_by_text(text, exact=True))


def drawn(page, selector: str = "#heat") -> dict[str, list[int]]:
    """The colours at the left and the right of a canvas, as soon as it is drawn."""
    page.wait_for_function(f"document.querySelector('{selector}').dataset.drawn")
    page.wait_for_timeout(60)  # a later drawing, if one is under way
    return page.evaluate(
        """(selector) => {
          const canvas = document.querySelector(selector);
          const at = (x) => [...canvas.getContext("2d").getImageData(
            x * canvas.width, canvas.height / 2, 1, 1).data];
          return { left: at(0.1), right: at(0.9) };
        }""",
        selector,
    )


def picture_filter(page) -> str:
    page.wait_for_timeout(350)  # it fades
    return page.evaluate("getComputedStyle(document.querySelector('#picture img')).filter")


def test_it_opens_on_the_picture_in_colour_its_caption_and_a_verdict(page) -> None:
    assert page.locator("#heat").is_hidden()
    assert picture_filter(page) == "none"
    assert page.locator("h1").inner_text().replace("\n", "").startswith("a cat")
    assert page.locator("#verdict").inner_text() == (
        "1 of 2 checked words is seen in the picture; “sleeps” is not."
    )
    assert "Point at a word" in page.locator("#why").inner_text()
    assert page.locator("#numbers").is_hidden()
    for part in ("#picture", "h1", "#verdict"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 800


def test_pointing_at_a_word_shows_its_heatmap_and_why(page) -> None:
    word(page, "sleeps").hover()
    heat = drawn(page)
    assert heat["left"] == [*ORANGE, 255]
    assert heat["right"][:3] == pytest.approx(BLUE, abs=2)
    assert heat["right"][3] == pytest.approx(128, abs=2)
    said = page.locator("#why").inner_text()
    assert "✗ not supported" in said
    assert "Said mostly because of the “cat” at the top left of the picture." in said
    assert "Otherwise it would most likely have said “bird” (20 %)." in said
    assert "The picture does not support it: " in said
    assert "grayscale(1)" in picture_filter(page)
    page.mouse.move(5, 5)
    assert page.locator("#heat").is_hidden()
    assert picture_filter(page) == "none"


def test_words_before_are_tinted_by_their_relevance(page) -> None:
    word(page, "sleeps").hover()
    signs = page.locator("h1 .word").evaluate_all("(words) => words.map((w) => w.dataset.sign)")
    assert signs == ["against", "for", ""]
    weights = page.locator("h1 .word").evaluate_all(
        "(words) => words.map((w) => Number(w.style.getPropertyValue('--weight')))"
    )
    assert weights == [1, 0.25, 0]


def test_a_keyboard_is_enough(page) -> None:
    def shown() -> str:
        return page.locator("#why h2").inner_text().split("\n")[0]

    page.keyboard.press("Tab")  # the method
    page.keyboard.press("Tab")  # the display options
    page.keyboard.press("Tab")
    assert shown().startswith("“a”")
    page.keyboard.press("Tab")
    assert shown().startswith("“cat”")
    page.keyboard.press("ArrowRight")
    assert shown().startswith("“sleeps”")
    page.keyboard.press("End")
    assert shown() == "Why not “dog”?"
    page.keyboard.press("Home")
    assert shown().startswith("“a”")
    page.keyboard.press("ArrowLeft")
    assert shown().startswith("“a”")
    page.keyboard.press("Enter")
    assert word(page, "a").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert word(page, "a").get_attribute("aria-pressed") == "false"
    assert page.locator("#heat").is_hidden()


def test_a_click_keeps_a_word_and_another_click_lets_go(page) -> None:
    word(page, "cat").click()
    page.mouse.move(5, 5)
    page.locator("body").evaluate("() => document.activeElement.blur()")
    assert page.locator("#heat").is_visible()
    assert page.locator("#why h2").inner_text().startswith("“cat”")
    word(page, "cat").click()
    page.mouse.move(5, 5)
    page.locator("body").evaluate("() => document.activeElement.blur()")
    assert page.locator("#heat").is_hidden()


def test_numbers_are_folded_away_and_each_is_explained(page) -> None:
    word(page, "cat").click()
    assert page.locator(".numbers").is_hidden()
    page.locator("#numbers summary").click()
    rows = page.locator(".numbers tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert ["probability", "40 %"] in [row[:2] for row in rows]
    assert ["support", "90 %"] in [row[:2] for row in rows]
    assert ["the picture", "+1.00"] in [row[:2] for row in rows]
    assert ["“bird”", "20 %"] in [row[:2] for row in rows]
    assert all(len(row) == 3 and row[2] for row in rows)


def test_display_options(page) -> None:
    word(page, "cat").click()
    page.locator(".view summary").click()
    page.locator("#contrast").fill("2")
    assert drawn(page)["right"][3] == pytest.approx(255, abs=2)
    page.locator("#contrast").fill("1")
    page.locator("#common").check()
    # On the scale of "sleeps", which has half as much again, "cat" is paler.
    assert drawn(page)["left"][3] == pytest.approx(255 * 2 / 3, abs=2)
    page.locator("#opacity").fill("0.3")
    assert page.locator("#heat").evaluate("(heat) => heat.style.opacity") == "0.3"
    page.locator("#grey").uncheck()
    assert picture_filter(page) == "none"


def test_another_method(page) -> None:
    word(page, "cat").click()
    assert page.locator(".scale").inner_text().split("\n") == ["against the word", "for the word"]
    page.locator("#method").select_option("attention")
    assert drawn(page)["right"][:3] == pytest.approx(ORANGE, abs=2)
    assert page.locator(".scale").inner_text().split("\n") == ["less", "more"]  # it has no sign
    assert "The captioner looked most at" in page.locator("#why").inner_text()
    assert "says nothing about the previous words" in page.locator("#influence").inner_text()


def test_every_word_at_a_glance(page) -> None:
    captions = page.locator("#glance figcaption").all_inner_texts()
    assert [text.split()[0] for text in captions] == ["a", "cat", "sleeps", "not:"]
    seen = drawn(page, "#glance canvas")
    assert seen["left"][0] > seen["left"][2] + 100  # orange
    assert seen["right"][2] > seen["right"][0] + 50  # blue
    label = page.locator("#glance canvas").nth(1).get_attribute("aria-label")
    assert label.startswith("LRP of “cat”: strongest for the word at the top left")


def test_how_words_lean_on_each_other(page) -> None:
    rows = page.locator(".influence tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert rows[0] == ["", "the picture", "(start)", "a", "cat"]
    # Of "sleeps": 1.5 of the picture; 0.5, -1 and 0.25 of the words before it.
    assert rows[3] == ["sleeps", "+46 %", "+15 %", "−31 %", "+8 %"]
    assert rows[1] == ["a", "+50 %", "+50 %", "", ""]
    word(page, "cat").hover()
    assert page.locator(".influence tr.shown th").inner_text() == "cat"


def test_two_words_side_by_side(page) -> None:
    def said() -> list[str]:
        return page.locator("#compare figcaption p").all_inner_texts()

    first, _ = said()
    assert first.startswith("Said mostly")
    drawn(page, "#compare canvas")
    page.get_by_label("Second word").select_option("3")
    assert said()[1].startswith("“dog” had 30 %")
    assert said()[0] == first
    # "a" has a third of the relevance of "sleeps", and is paler on their scale, but not on its own.
    page.get_by_label("First word").select_option("0")
    page.get_by_label("Second word").select_option("2")
    pale = drawn(page, "#compare canvas")["left"]
    page.get_by_label("Second word").select_option("0")
    full = drawn(page, "#compare canvas")["left"]
    assert full[0] > pale[0] + 50
    assert full == drawn(page, "#compare .card:nth-child(2) canvas")["left"]


def test_methods_side_by_side_with_what_the_benchmark_says(page) -> None:
    cards = page.locator("#methods .card").all_inner_texts()
    assert [card.split("\n")[0] for card in cards] == ["LRP", "Attention"]
    assert describe_method("lrp") in cards[0]
    assert describe_method("attention") in cards[1]
    assert "Flickr8k" in page.locator("#methods").inner_text()
    word(page, "cat").click()
    assert page.locator("#methods").inner_text().split("\n")[2].startswith("“cat” by each method")
    page.get_by_role("button", name="Use Attention").click()
    assert page.locator("#method").input_value() == "attention"
    assert page.get_by_role("button", name="Use LRP").get_attribute("aria-pressed") == "false"


def ask(page, text: str) -> str:
    page.get_by_label("Why not").fill(text)
    page.get_by_role("button", name="Ask").click()
    return page.locator("#answer").inner_text()


def test_why_not_is_answered_for_any_word(make_report, visit) -> None:
    page = visit(render_page(make_report(unknown=(UnknownWord("wolf", "dog", "meaning"),))))
    assert "“wolf” is not among its 5 words" in page.locator(".whynot .unknown").inner_text()
    assert ask(page, " Dog ") == ""
    assert page.locator("#why h2").inner_text() == "Why not “dog”?"
    assert word(page, "cat").evaluate("(cat) => cat.classList.contains('replaced')")
    assert ask(page, "cat") == "The caption does say “cat”, as word 2."
    assert ask(page, "horn").startswith(
        "“horn” was likeliest as word 4, where the caption ends: 1 %.\n"
    )
    assert "sightline explain photo.jpg --why-not horn" in page.locator("#answer").inner_text()
    assert ask(page, "bird").startswith("“bird” was likeliest as word 2, where it said “cat”: 20 %")
    assert ask(page, "zoo").startswith("It knows “zoo”, but found it very unlikely everywhere")
    assert ask(page, "wolf") == (
        "“wolf” is not among its 5 words; the nearest that it knows is “dog”."
    )
    assert page.locator("#why h2").inner_text() == "Why not “dog”?"
    assert ask(page, "hornn") == ("“hornn” is not among its 5 words; spelt most like it is “horn”.")
    assert ask(page, "qwertz") == (
        "“qwertz” is not among its 5 words; it knows none that is spelt like it."
    )
    assert ask(page, "big dog") == "Ask about one word at a time."
    assert ask(page, "  ") == ""


def test_an_unknown_word_is_answered_by_its_meaning(make_report, visit, monkeypatch) -> None:
    page = visit(render_page(make_report()))
    assert ask(page, "Trumpet") == (
        "“trumpet” is not among its 5 words; the nearest that it knows is “horn”."
    )
    assert ask(page, "wolf") == (
        "“wolf” is not among its 5 words; the nearest that it knows is “dog”."
    )
    monkeypatch.setattr("sightline.report.page.unknown_neighbours", lambda known: {})
    page = visit(render_page(make_report()))  # without WordNet
    assert "it knows none that is spelt like it" in ask(page, "trumpet")


def test_ones_own_caption_says_so_and_marks_what_is_unknown(make_report, visit) -> None:
    assert visit(render_page(make_report())).locator(".own").count() == 0
    unknown = (UnknownWord("sleeps", "dog", "meaning"),)
    page = visit(render_page(make_report(readers_own=True, unknown=unknown)))
    assert page.locator(".own").inner_text().startswith("Your own caption")
    strange = word(page, "sleeps")
    assert "a word it does not know" in strange.inner_text()
    strange.hover()
    assert "“sleeps” is not among its 5 words" in page.locator("#why").inner_text()
    assert page.locator("#heat").is_hidden()
    word(page, "cat").hover()
    assert page.locator("#heat").is_visible()


def test_an_unfamiliar_picture_has_a_banner(make_report, visit) -> None:
    page = visit(render_page(make_report(unfamiliar=True)))
    assert page.get_by_role("note").inner_text() == UNFAMILIAR
    assert visit(render_page(make_report())).get_by_role("note").count() == 0


def test_the_way_back_to_the_index(make_report, visit) -> None:
    page = visit(render_page(make_report(), index="index.html"))
    assert page.get_by_role("link", name="All pictures").get_attribute("href") == "index.html"
    assert visit(render_page(make_report())).get_by_role("link").count() == 0


def test_a_server_is_asked_what_the_page_cannot_show(page) -> None:
    page.evaluate(
        """() => {
          const data = JSON.parse(document.getElementById("data").textContent);
          const ask = (word) => { window.asked = word; };
          sightline.showReport(document.getElementById("page"), data, { ask });
        }"""
    )
    ask(page, "two words")
    assert "one word at a time" in page.locator("#answer").inner_text()
    ask(page, "Horn")
    assert page.evaluate("window.asked") == "horn"


def test_a_report_grows_by_a_method(make_report, page) -> None:
    """What was there stays, and the method's maps are drawn as soon as they come."""
    report = make_report(methods=("lrp", "attention"))
    lrp = tuple(why for why in report.explanations if why.method == "lrp")
    begun = dataclasses.replace(report, explanations=lrp, pending=("attention",))
    page.evaluate(
        """([data]) => {
          window.state = sightline.showReport(document.getElementById("page"), data);
          state.set({ pinned: 1, method: "attention" });
        }""",
        [page_data(begun) | {"growing": True}],
    )
    assert "still being computed" in page.locator("#why").inner_text()
    assert page.locator("#methods").count() == 0
    page.evaluate("(grown) => state.grow(grown)", grown_data(report, "attention"))
    assert page.locator("#why").inner_text().count("looked most") == 1
    assert drawn(page)["left"][:3] == ORANGE
    assert page.locator("#methods .card").count() == 2


def test_only_some_words_were_explained(make_report, visit) -> None:
    report = make_report()
    some = tuple(why for why in report.explanations if why.word == "cat")
    page = visit(render_page(dataclasses.replace(report, explanations=some, counterfactuals=())))
    word(page, "sleeps").hover()
    assert "No explanation of this word was asked for." in page.locator("#why").inner_text()
    assert page.locator("#compare").count() == 0
    assert page.locator("#glance .card").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280, 3840])
def test_it_fits_every_width(make_report, visit, width: int, theme: str) -> None:
    said = (
        "a",
        "supercalifragilisticexpialidocious" * 3,
        "dog",
        "runs",
        "on",
    )
    page = visit(render_page(make_report(said=said, checked=False)), width, 900, theme)
    word(page, "dog").nth(0).hover()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    size = page.locator("h1").evaluate("(h1) => parseFloat(getComputedStyle(h1).fontSize)")
    assert size > {375: 26, 1280: 36, 3840: 80}[width]
    beside = (
        page.locator("h1").bounding_box()["x"] > page.locator("#picture").bounding_box()["x"] + 50
    )
    assert beside == (width > 800)


def test_a_wicked_caption_stays_text(make_report, visit) -> None:
    wicked = ("</script><script>wicked=1</script>", '"><img src=x onerror=wicked=2>', "<!--")
    page = visit(render_page(make_report(said=wicked)))
    assert page.evaluate("window.wicked === undefined")
    assert page.locator("h1 .word .text").all_inner_texts() == list(wicked)
    word(page, wicked[1]).hover()
    assert wicked[1] in page.locator("#why h2").inner_text()
