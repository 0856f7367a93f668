"""Review in a browser: thousands of pictures, a keyboard, and nothing lost."""

import csv
import io
import re
import shutil

import httpx
import pytest

from real_server import serving, visiting
from sightline.bulk.records import Record
from sightline.bulk.sources import open_source
from sightline.captions import Caption, Support, Word
from sightline.review.captioning import Captioning
from sightline.review.collection import Review
from sightline.server.review import review_section

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

MANY = 3000


def caption_of(number):
    """The later a picture, the more doubtful its caption."""
    support = Support(1 - number / MANY, "seen" if number % 2 else "doubtful", {})
    word = Word(f"thing{number}", -1.0, (), (), support=support)
    return Caption(f"a thing{number}", (word,), -1.0, -1.0, ())


@pytest.fixture(scope="module")
def album(tmp_path_factory, examples):
    """Thousands of names for one small picture."""
    folder = tmp_path_factory.mktemp("many") / "album"
    folder.mkdir()
    original = folder / "p0000.jpg"
    shutil.copy(examples / "coffee.jpg", original)
    for number in range(1, MANY):
        (folder / f"p{number:04d}.jpg").hardlink_to(original)
    return folder


@pytest.fixture
def review(album, tmp_path, monkeypatch):
    """Captioned already, so that nothing is to be done in the background."""
    monkeypatch.setattr(Captioning, "start", lambda self: None)
    return captioned(Review(album, tmp_path / "state"))


@pytest.fixture
def few(tmp_path, examples, monkeypatch):
    """The same of four pictures."""
    monkeypatch.setattr(Captioning, "start", lambda self: None)
    folder = tmp_path / "few"
    folder.mkdir()
    for number in range(4):
        shutil.copy(examples / "coffee.jpg", folder / f"p{number}.jpg")
    return captioned(Review(folder))


def captioned(opened):
    opened.scan()
    records = [
        Record(item, "0" * 64, [caption_of(number)], "test")
        for number, item in enumerate(open_source(opened.folder))
    ]
    opened.write(records, [], "job")
    return opened


def in_hand(page):
    return page.locator("[aria-selected=true]").get_attribute("aria-posinset")


def test_by_keyboard_over_thousands(browser, review):
    with (
        serving([review_section(review)]) as address,
        visiting(browser, f"{address}/review") as page,
    ):
        page.get_by_text(f"0 of {MANY} decided").wait_for()
        page.locator(".tile .name").first.wait_for()
        assert page.locator(".tile").count() < 80  # only those near the screen are made
        first = page.locator("[aria-selected=true]")
        assert "thing2998" in first.inner_text()  # the most doubtful one
        first.click()
        for key in ("a", "r"):
            page.keyboard.press(key)
            page.locator("#note", has_text="accepted" if key == "a" else "rejected").wait_for()
        page.keyboard.press("e")
        page.keyboard.type("A cup, seen from above")
        page.keyboard.press("Enter")
        page.get_by_text(f"3 of {MANY} decided").wait_for()
        by_name = {entry.name: entry for entry in review.entries(review.order("all", "recent")[:3])}
        assert by_name["p2998.jpg"].state == "accepted"
        assert by_name["p2998.jpg"].text == "a thing2998"
        assert by_name["p2996.jpg"].state == "rejected"
        assert by_name["p2994.jpg"].text == "A cup, seen from above"
        # Undo takes back the last one, and goes there.
        page.keyboard.press("u")
        page.get_by_text(f"2 of {MANY} decided").wait_for()
        assert "p2994.jpg" in page.locator("[aria-selected=true]").inner_text()
        # Letters typed into the text decide nothing.
        page.keyboard.press("e")
        page.keyboard.type("area")
        page.keyboard.press("Escape")
        assert page.locator("#text").input_value() == "a thing2994"
        page.get_by_text(f"2 of {MANY} decided").wait_for()
        page.keyboard.press("End")
        page.locator("[aria-selected=true] .name").wait_for()
        assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == str(MANY)
        assert page.locator(".tile").count() < 120


def test_filters_search_and_two_windows(browser, review):
    with (
        serving([review_section(review)]) as address,
        visiting(browser, f"{address}/review", 375, 740, "dark", "status of 409") as page,
    ):
        page.get_by_text(f"0 of {MANY} decided").wait_for()
        page.locator("#search").fill("thing17")
        page.get_by_text("111 shown").wait_for()
        page.locator("#order").select_option("name")
        page.locator("#card-0", has_text="p0017.jpg").wait_for()
        page.locator("#filter").select_option("marked")
        page.get_by_text("55 shown").wait_for()
        page.locator("#filter").select_option("rejected")
        page.get_by_text("No picture is shown here.").wait_for()
        page.locator("#filter").select_option("all")
        page.locator("[aria-selected=true]", has_text="p0017.jpg").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        # Meanwhile it is decided elsewhere: this window says so and takes nothing back.
        review.decide(18, "edited", "of the other window")
        page.locator("#accept").click()
        page.locator("#note", has_text="another window").wait_for()
        page.locator("#caption", has_text="of the other window").wait_for()
        assert review.entries([18])[0].text == "of the other window"


def test_a_late_answer_moves_nobody_and_undo_takes_back_one_after_the_other(browser, few):
    with serving([review_section(few)]) as address, visiting(browser, f"{address}/review") as page:
        page.locator("[aria-selected=true] .name").wait_for()
        page.locator("[aria-selected=true]").click()
        held = []
        page.route("**/review/decisions", lambda route: held.append(route))
        with page.expect_request("**/review/decisions"):
            page.keyboard.press("a")
        page.keyboard.press("a")  # of the same picture: it is decided already
        page.keyboard.press("ArrowRight")
        held[0].continue_()
        page.get_by_text("1 of 4 decided").wait_for()
        page.unroute("**/review/decisions")
        assert (len(held), in_hand(page)) == (1, "2")
        page.keyboard.press("r")
        page.get_by_text("2 of 4 decided").wait_for()
        page.keyboard.press("u")
        page.get_by_text("1 of 4 decided").wait_for()
        assert in_hand(page) == "2"
        page.locator("#filter").select_option("rejected")  # the other one is not shown now
        page.get_by_text("0 shown").wait_for()
        page.locator("h1").click()
        page.keyboard.press("u")
        page.get_by_text("0 of 4 decided").wait_for(timeout=10_000)


def test_an_answer_that_comes_late_replaces_no_later_one(browser, few):
    with serving([review_section(few)]) as address, visiting(browser, f"{address}/review") as page:
        page.locator("[aria-selected=true] .name").wait_for()
        held = []
        page.route(re.compile("text=thing$"), lambda route: held.append(route))
        with page.expect_request(re.compile("text=thing$")):
            page.locator("#search").fill("thing")
        page.locator("#search").fill("thing2")
        page.get_by_text("1 shown").wait_for()
        with page.expect_response(re.compile("text=thing$")):
            held[0].continue_()
        page.evaluate("fetch('/review/state').then((answer) => answer.json())")
        assert "1 shown" in page.locator("#count").inner_text()


def test_the_focus_stays_in_the_grid_when_it_is_sorted_again(browser, few):
    with serving([review_section(few)]) as address, visiting(browser, f"{address}/review") as page:
        page.locator("[aria-selected=true] .name").wait_for()
        page.locator("[aria-selected=true]").click()
        with page.expect_response("**/review/order*"):
            page.evaluate("document.querySelector('#order').dispatchEvent(new Event('change'))")
        page.evaluate("fetch('/review/state').then((answer) => answer.json())")
        page.keyboard.press("ArrowRight")
        assert in_hand(page) == "2"


def test_accepting_keeps_what_was_written(browser, few):
    with serving([review_section(few)]) as address, visiting(browser, f"{address}/review") as page:
        page.locator("[aria-selected=true] .name").wait_for()
        page.locator("#text").fill("A cup, seen from above")
        page.locator("#accept").click()
        page.get_by_text("1 of 4 decided").wait_for()
        page.locator("#accept").click()
        page.get_by_text("2 of 4 decided").wait_for()
        last, first = few.entries(few.order("all", "recent")[:2])
        assert (first.state, first.text) == ("edited", "A cup, seen from above")
        assert (last.state, last.text) == ("accepted", last.caption)


def test_exports(browser, review):
    review.decide(1, "edited", "first")
    with serving([review_section(review)]) as address:
        table = httpx.get(f"{address}/review/tables/csv")
        (row,) = csv.DictReader(io.StringIO(table.text))
        assert (row["caption"], row["decision"]) == ("first", "edited")
        assert "attachment" in table.headers["content-disposition"]
        everything = httpx.get(f"{address}/review/tables/jsonl?undecided=true", timeout=60).text
        assert everything.count("\n") == MANY
        with visiting(browser, f"{address}/review") as page:
            page.get_by_text("Export").click()
            page.locator("#export-txt").click()
            page.locator("#note", has_text="1 sidecar written").wait_for(timeout=120_000)
    sidecar = review.folder / "p0000.txt"
    assert sidecar.read_text() == "first\n"
    sidecar.unlink()


def test_bad_requests_are_problems(review):
    with (
        serving([review_section(review)]) as address,
        httpx.Client(base_url=f"{address}/review", timeout=30) as client,
    ):
        for path in ("/pictures/999999", "/pictures/0"):
            assert client.get(path).status_code == 404
        for path in ("/entries?ids=1;2", "/order?filter=x", "/pictures/1?side=9", "/tables/xml"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (
                *(422, "application/problem+json"),
            )
        for body in ({"id": 1, "state": "liked", "after": 0}, {"id": 9**9, "state": "open"}):
            assert client.post("/decisions", json=body).status_code == 422
        empty = {"id": 1, "state": "edited", "text": " ", "after": 0}
        assert client.post("/decisions", json=empty).status_code == 422
        picture = client.get("/pictures/1")
        assert picture.headers["content-type"] == "image/jpeg"
        known = {"If-None-Match": picture.headers["etag"]}  # of this file, and not of a number
        assert client.get("/pictures/1", headers=known).status_code == 304
        assert client.get("/pictures/2", headers=known).status_code == 200
        cross = client.post("/decisions", json=empty, headers={"Origin": "http://evil.example"})
        assert cross.status_code == 403
        assert review.counts()["open"] == MANY
