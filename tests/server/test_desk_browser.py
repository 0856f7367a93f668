"""What someone with pictures does on the page, in a browser, with a server that runs."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from axe import violations
from desk_page import choose, finished, until

UNCHECKED = "Its words were not checked against the picture."

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def page(visit, server: str, examples: Path) -> Any:
    """A page on which a picture was explained, for tests that ask for more one after the other."""
    opened = visit(server)
    assert opened.locator("h1").inner_text() == "What is in your picture?"
    choose(opened, examples / "cat.jpg")
    finished(opened)
    return opened


def named(page, name: str) -> None:
    """Wait until a picture of this name is shown."""
    until(page, "document.querySelector('.top .quiet')?.textContent === given", name)


def word(page, place: int):
    return page.locator("#caption button.word").nth(place)


def test_a_picture_in_its_caption_verdicts_and_heatmaps_out(page) -> None:
    assert page.locator("#verdict").inner_text() != UNCHECKED
    assert page.locator("#heat").is_hidden()
    word(page, 0).hover()
    until(page, "document.querySelector('#heat').dataset.drawn")
    assert page.locator("#heat").is_visible()
    page.mouse.move(1, 1)
    word(page, 1).focus()  # as by the tabulator
    assert page.locator("#heat").is_visible()
    assert page.locator("#methods .card").count() == 4
    assert page.locator("#glance .card").count() == page.locator("#caption button.word").count()


def test_why_not_another_word(page) -> None:
    said = {
        text.split("\n")[0].strip() for text in page.locator("#caption .text").all_inner_texts()
    }
    other = next(text for text in ("cup", "coffee", "table", "cat") if text not in said)
    page.fill("#whynot", other)
    page.locator(".whynot button[type=submit]").click()
    until(page, f"document.querySelector('#why h2')?.textContent.includes('{other}')")
    finished(page)
    assert page.locator("#why h2").inner_text() == f"Why not “{other}”?"
    assert page.locator("#heat").is_visible()


def test_the_check_follows_an_edited_caption(page) -> None:
    page.fill("#edit", "a red zebra on the table")  # and nothing is pressed
    until(page, "document.querySelector('#caption')?.textContent.includes('zebra')")
    finished(page)
    assert "Your own caption" in page.locator(".own").inner_text()
    assert "zebra" in page.locator("#caption .unknown").inner_text()
    assert page.evaluate("document.activeElement.id") == "edit"
    assert page.locator("#edit").input_value() == "a red zebra on the table"
    page.fill("#edit", "qqq")
    page.locator("#progress .problem").wait_for()
    assert "knows none of the words" in page.locator("#progress").inner_text()
    page.fill("#edit", "a red cat")
    until(page, "document.querySelector('#caption')?.textContent.includes('cat')")
    finished(page)


def test_a_method_that_failed_is_not_asked_for_again_by_itself(page) -> None:
    asked = []

    def refuse(route) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"problem": "this cannot be explained"})

    chosen = page.locator("#method").input_value()
    page.route("**/desk/explain", refuse)
    page.select_option("#method", "lrp")
    page.locator("#progress .problem").wait_for()
    word(page, 0).hover()
    page.wait_for_timeout(1500)
    shown = page.locator("#progress").inner_text()
    page.unroute("**/desk/explain")
    page.select_option("#method", chosen)
    assert shown.startswith("This cannot be explained.")
    assert len(asked) == 1


def test_another_of_the_beam_is_the_captioners_own(page) -> None:
    page.locator(".beam summary").click()
    other = page.locator(".beam button[aria-pressed=false]").first
    text = other.inner_text()
    other.click()
    until(page, "document.querySelector('#edit').value === given", text)
    finished(page)
    assert page.locator("#caption .text").all_inner_texts() == text.split()
    assert page.locator(".own").count() == 0


def test_a_method_is_computed_when_it_is_chosen(page) -> None:
    word(page, 0).click()
    page.select_option("#method", "lrp")
    until(page, "document.querySelectorAll('#methods .card').length === 5")
    assert "still being computed" not in page.locator("#why").inner_text()


def test_another_captioner(visit, start, examples, save_captioner, tmp_path) -> None:
    first, second = (save_captioner(tmp_path / name, seed) for seed, name in enumerate("ab"))
    page = visit(start(first, second))
    choose(page, examples / "cat.jpg")
    finished(page)
    with page.expect_request("**/desk/explain") as asked:
        page.select_option("#captioner", "b")
    assert b'name="model"\r\n\r\nb\r\n' in (asked.value.post_data_buffer or b"")
    finished(page)
    assert page.locator("#verdict").inner_text() == UNCHECKED


def test_pictures_are_dropped_and_pasted(visit, server, cat) -> None:
    page = visit(server)
    for event, field in (("drop", "dataTransfer"), ("paste", "clipboardData")):
        page.evaluate(
            """([bytes, event, field]) => {
              const given = new DataTransfer();
              const name = `${event}.jpg`;
              given.items.add(new File([new Uint8Array(bytes)], name, { type: "image/jpeg" }));
              const Kind = event === "drop" ? DragEvent : ClipboardEvent;
              const options = { [field]: given, bubbles: true, cancelable: true };
              document.body.dispatchEvent(new Kind(event, options));
            }""",
            [list(cat), event, field],
        )
        named(page, f"{event}.jpg")
    finished(page)
    assert page.locator(".tray button").count() == 2


def test_photographs_of_telephones(visit, server, examples, tmp_path) -> None:
    """A rotated picture stands upright; HEIC, which browsers do not show, is shown."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(examples / "cat.jpg").transpose(Image.Transpose.ROTATE_90).save(
        tmp_path / "rotated.jpg", exif=exif
    )
    heic = Path(__file__).parents[1] / "formats" / "rotated.heic"
    page = visit(server)
    for file, size in ((tmp_path / "rotated.jpg", [451, 300]), (heic, [48, 64])):
        choose(page, file)
        named(page, file.name)
        finished(page)
        shown = page.evaluate(
            "(({ naturalWidth, naturalHeight }) => [naturalWidth, naturalHeight])"
            "(document.querySelector('#picture img'))"
        )
        assert shown == size


def test_what_is_no_picture_is_said(visit, server, tmp_path) -> None:
    (tmp_path / "notes.jpg").write_text("hello, this is text")
    page = visit(server)
    choose(page, tmp_path / "notes.jpg")
    page.locator("#progress .problem").wait_for()
    assert "holds text, not a picture" in page.locator("#progress").inner_text()


def test_long_work_shows_progress_and_can_be_cancelled(visit, start, examples) -> None:
    page = visit(start(window=1.5))  # loading the captioner takes a while, too
    choose(page, examples / "cat.jpg")
    page.locator("#progress progress").wait_for()
    page.locator("#progress button").click()
    until(page, "document.querySelector('#progress').textContent.includes('Cancelled')")
    page.wait_for_timeout(300)
    assert page.locator("#methods .card").count() == 0


def test_the_folder_that_the_server_was_started_with(visit, start, tmp_path, cat) -> None:
    outside = tmp_path / "outside.jpg"
    outside.write_bytes(cat)
    folder = tmp_path / "pictures"
    (folder / "inner").mkdir(parents=True)
    for name in ("b.jpg", "inner/a.jpg"):
        (folder / name).write_bytes(cat)
    (folder / "link.jpg").symlink_to(outside)
    page = visit(start(folder=folder))
    until(page, "document.querySelectorAll('.folder img').length === 2")
    labels = page.locator(".folder .line").all_inner_texts()
    assert labels == ["b.jpg", "inner/a.jpg"]  # and nothing that a link leads to
    page.locator(".folder button").nth(1).click()
    finished(page)
    assert page.locator(".top .quiet").inner_text() == "inner/a.jpg"
    for path in ("2", "-1", "..%2f..%2foutside.jpg"):
        answer = page.request.get(f"{page.url}desk/thumbnails/{path}")
        assert answer.status in (404, 422)


def test_it_fits_a_telephone(visit, server, examples) -> None:
    page = visit(server, 375, 700)
    choose(page, examples / "cat.jpg")
    finished(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_picture_that_is_no_longer_kept_is_sent_again(visit, start, examples) -> None:
    page = visit(start(kept_pictures=1))
    choose(page, examples / "cat.jpg")
    finished(page)
    other = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(other, "png")
    page.request.post(
        f"{page.url}desk/explain",
        multipart={"image": {"name": "x", "mimeType": "image/png", "buffer": other.getvalue()}},
    )
    page.fill("#edit", "a red cat")
    until(page, "document.querySelector('#caption')?.textContent.includes('red')")
    finished(page)
    assert page.locator("#progress .problem").count() == 0


@pytest.mark.network
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_has_no_violations(visit, server, examples, axe, theme: str, width: int) -> None:
    page = visit(server, width, 800, theme)
    assert violations(page, axe) == []
    choose(page, examples / "cat.jpg", examples / "coffee.jpg")
    finished(page)
    page.locator(".beam summary").click()
    word(page, 0).click()
    page.mouse.move(1, 1)
    assert violations(page, axe) == []
