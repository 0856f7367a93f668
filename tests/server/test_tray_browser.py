"""Several pictures at once: one is explained, the others are captioned meanwhile."""

from pathlib import Path

import pytest

from desk_page import choose, finished, until
from sightline.captioner import Captioner

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
NAMES = ("cat.jpg", "coffee.jpg", "flower.jpg")


def states(page) -> list[str]:
    buttons = page.locator(".tray button")
    return [buttons.nth(n).get_attribute("data-state") for n in range(buttons.count())]


def test_all_pictures_that_were_given_are_captioned(
    visit, server, examples, fitted_checkpoint, tmp_path
) -> None:
    (tmp_path / "notes.jpg").write_text("hello, this is text")
    heic = Path(__file__).parents[1] / "formats" / "rotated.heic"
    page = visit(server)
    choose(page, *(examples / name for name in NAMES), tmp_path / "notes.jpg", heic)
    assert "open" in states(page)
    assert "waiting" in states(page)
    until(page, "!document.querySelector('[data-state=waiting], [data-state=working]')")
    finished(page)
    assert states(page) == ["captioned", "captioned", "captioned", "failed", "captioned"]
    assert page.locator(".background").is_hidden()
    captioner = Captioner.load(fitted_checkpoint, device="cpu")
    tiles = page.locator(".tray .line")
    for place, name in enumerate(NAMES):
        said = tiles.nth(place).locator(".text").all_inner_texts()
        assert " ".join(said) == captioner.caption(examples / name).text
    assert "holds text, not a picture" in tiles.nth(3).inner_text()
    assert page.locator(".tray .mark").count() > 0
    # The browser cannot show HEIC, the server can.
    until(page, "document.querySelectorAll('.tray img')[4].naturalWidth === 48")
    page.locator(".tray button").nth(1).click()
    until(page, "document.querySelector('.top .quiet')?.textContent === 'coffee.jpg'")
    finished(page)
    assert page.locator("#glance .card").count() > 0


def test_captions_in_the_background_can_be_cancelled(visit, start, examples) -> None:
    page = visit(start(window=1.0))  # so that each takes a while
    choose(page, *(examples / name for name in (*NAMES, "rocket.jpg", "palace.jpg")))
    until(page, "document.querySelector('[data-state=working]')")
    page.locator(".background button").click()
    assert set(states(page)) <= {"captioned", "stopped"}
    assert states(page)[-1] == "stopped"
    assert page.locator(".background").is_hidden()
    finished(page)
    assert states(page)[-1] == "stopped"
    page.locator(".tray button").last.click()
    finished(page)
    assert page.locator(".top .quiet").inner_text() == "palace.jpg"
    assert states(page)[-1] == "captioned"


def test_the_pictures_of_a_dropped_folder(visit, server) -> None:
    names = visit(server).evaluate(
        """async () => {
          const file = (name, type) => ({ isFile: true, name,
            file: (give) => give(new File(["x"], name, { type })) });
          const folder = (name, ...entries) => ({ isDirectory: true, name, createReader: () => ({
            readEntries: (give) => give(entries.splice(0, 1)) }) });
          const dropped = folder("holiday", file("10.jpg", "image/jpeg"),
            file("9.jpg", "image/jpeg"), file("notes.txt", "text/plain"),
            folder("more", file("a.HEIC", "")));
          const files = await sightline.filesOf(
            { items: [{ webkitGetAsEntry: () => dropped }], files: [] });
          return files.map(({ name }) => name);
        }"""
    )
    assert names == ["9.jpg", "10.jpg", "a.HEIC"]
