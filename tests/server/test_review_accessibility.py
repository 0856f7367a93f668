"""The pages of review and of blind comparison, checked by axe in a browser."""

import pytest
from PIL import Image

from real_server import serving, visiting
from sightline.blind.answers import Answers
from sightline.blind.compare import compare_blind
from sightline.review.captioning import Captioning
from sightline.review.collection import Review
from sightline.server.rating import rating_sections
from sightline.server.review import review_section

pytestmark = [pytest.mark.browser, pytest.mark.network, pytest.mark.xdist_group("browser")]


def test_no_page_has_violations(browser, axe, tmp_path, monkeypatch):
    monkeypatch.setattr(Captioning, "start", lambda self: None)
    images = tmp_path / "images"
    images.mkdir()
    for name in "ab":
        Image.new("RGB", (60, 40)).save(images / f"{name}.jpg")
        (tmp_path / f"{name}.csv").write_text(f"path,caption\na.jpg,{name} one\nb.jpg,{name} two\n")
    compare_blind(tmp_path / "a.csv", tmp_path / "b.csv", images, tmp_path / "study")
    answers, review = Answers(tmp_path / "study"), Review(images)
    review.scan()
    review.decide(1, "edited", "a dark picture")
    pages = {
        "/review": "#search",
        f"/rate/{answers.study.raters[0].token}": "#pair",
        "/blind": "#reveal",
    }
    sections = [review_section(review), *rating_sections(tmp_path / "study", answers)]
    with serving(sections) as address:
        for path, ready in pages.items():
            for width, theme in ((1280, "light"), (375, "dark")):
                with visiting(browser, f"{address}{path}", width, 800, theme) as page:
                    page.locator(ready).wait_for()
                    page.wait_for_timeout(400)  # colours fade
                    page.evaluate(axe)
                    result = page.evaluate("axe.run()")
                    assert len(result["passes"]) > 10
                    assert [broken["id"] for broken in result["violations"]] == []
