"""An audit in a browser: the report's filters, and its explanations."""

import httpx
import pytest

import sightline
from real_server import serving, visiting
from sightline.errors import DataError
from sightline.server.audit import audit_sections

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def audited(tmp_path_factory, examples, fitted_checkpoint):
    from sightline.audit.audit import audit_captions

    folder = tmp_path_factory.mktemp("audited")
    captions = folder / "captions.csv"
    captions.write_text(
        "path,caption\ncat.jpg,a red cat\ncoffee.jpg,a cup of coffee on the table\n"
    )
    judge = sightline.load(fitted_checkpoint)
    audit_captions(captions, folder / "out", examples, captioner=judge, pages=1)
    return folder / "out"


def test_it_is_shown_and_filtered(audited, browser):
    with (
        serving(audit_sections(audited)) as address,
        visiting(browser, f"{address}/audit") as page,
    ):
        page.get_by_text("2 of the 2 worst pictures").wait_for()
        page.locator("#search").fill("coffee")
        page.get_by_text("1 of the 2 worst pictures").wait_for()
        page.get_by_role("link", name="why?", exact=True).click()
        page.locator("button.word", has_text="coffee").first.wait_for()
        assert page.url.startswith(f"{address}/audit/pages/")
        data = httpx.get(f"{address}/audit/data").json()
        assert len(data["pictures"]) == 2
        assert httpx.get(f"{address}/audit/data/pages/..%2Freport").status_code == 404


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(DataError):
        audit_sections(tmp_path)
    (tmp_path / "report.html").write_text("<p>hello</p>")
    with pytest.raises(DataError, match="is not a page of sightline audit"):
        audit_sections(tmp_path)
