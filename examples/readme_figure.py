"""The figure of the README: the page of a photograph, as a browser shows it.

    python examples/readme_figure.py

writes docs/demo.png. It needs Chromium or Chrome, and Playwright, which `make test` installs.
"""

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import sightline
from sightline.files import atomic_write
from sightline.report.page import render_page

HERE = Path(__file__).parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", type=Path, default=HERE / "dog.jpg")
    parser.add_argument("--word", default="field", help="the word of the caption that is shown")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "docs" / "demo.png")
    options = parser.parse_args()
    report = sightline.load().report(options.picture, methods=("contrastive_lrp", "attention"))
    said = [word.text for word in report.caption.words]
    if options.word not in said:
        parser.error(f"the caption is '{report.caption}', without '{options.word}'")
    figure = screenshot(render_page(report), said.index(options.word))
    with atomic_write(options.output, "wb") as file:
        figure.save(file, "png", optimize=True)
    print(f"{options.output}: {report.caption}")


def screenshot(page_html: str, word: int) -> Image.Image:
    """The first screen with a word chosen, and all words at a glance."""
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox"], timeout=180_000
        )
        page = browser.new_page(
            viewport={"width": 1280, "height": 900},
            device_scale_factor=1.5,
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.set_content(page_html)
        page.locator("button.word").nth(word).click()
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_function(
            "[...document.querySelectorAll('#heat, #glance canvas')].every((c) => c.dataset.drawn)"
        )
        page.wait_for_timeout(500)
        glance = page.locator("#glance").bounding_box()
        assert glance is not None
        shot = page.screenshot(
            full_page=True,
            clip={"x": 0, "y": 0, "width": 1280, "height": glance["y"] + glance["height"] + 24},
        )
        browser.close()
    # A third of the bytes in 256 colours, chosen so that rare ones (marks, the scale) are kept.
    colours = Image.Quantize.MAXCOVERAGE
    return Image.open(io.BytesIO(shot)).convert("RGB").quantize(256, colours)


if __name__ == "__main__":
    main()
