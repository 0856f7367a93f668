"""Blind comparison in a browser: a rater with a known preference, and what a rater can learn."""

import csv
import io
import json

import httpx
import pytest
from PIL import Image

from real_server import serving, visiting
from sightline.blind.answers import Answers
from sightline.blind.compare import compare_blind
from sightline.blind.study import Check, Question
from sightline.experiments.paper0_table4 import Options, open_study, read_study
from sightline.server.rating import rating_sections

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAIRS = 15
PREFERENCE = {"near": 9, None: 3, "beside": 3}  # pairs by what is preferred: a word, or neither


@pytest.fixture
def folder(tmp_path):
    """Two systems that are told apart by one word, which only the test knows."""
    images = tmp_path / "images"
    images.mkdir()
    for number in range(PAIRS):
        Image.new("RGB", (60, 40), (10 * number, 80, 90)).save(images / f"thing{number}.jpg")
    for system, word in (("alpha-captioner", "near"), ("omega-captioner", "beside")):
        lines = [
            {"image": f"thing{n}.jpg", "caption": f"thing{n} {word} a wall{n}"}
            for n in range(PAIRS)
        ]
        content = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{system}.jsonl").write_text(content)
    compare_blind(
        *(tmp_path / f"{name}-captioner.jsonl" for name in ("alpha", "omega")),
        images,
        tmp_path / "study",
        raters=("Ann", "Ben"),
        questions=[Question("relevance", "Which fits better?")],
    )
    return tmp_path / "study"


def test_a_known_preference_is_recovered_and_nothing_tells_the_systems(browser, folder):
    answers = Answers(folder)
    traffic = []
    preferences = [word for word, times in PREFERENCE.items() for _ in range(times)]
    with serving(rating_sections(folder, answers)) as address:
        for rater in answers.study.raters:
            sheet = answers.sheets[rater.name]
            with visiting(browser, f"{address}/rate/{rater.token}") as page:
                page.on("response", lambda response: traffic.append(response))
                for place, shown in enumerate(sheet):
                    page.get_by_text(f"{place} of {len(sheet)} answered").wait_for()
                    left = page.locator("#left .in-hand").inner_text()
                    assert left == shown.sides[0]
                    if isinstance(shown.of, Check):
                        choice = ("left", "right")[shown.sides.index(shown.of.captions[0])]
                    else:
                        wanted = preferences[shown.number]
                        on_left = wanted is not None and f" {wanted} " in left
                        choice = "tie" if wanted is None else ("left" if on_left else "right")
                    page.locator(f"input[value={choice}]").focus()
                    page.keyboard.press("Space")
                    page.keyboard.press("Enter")
                page.locator("#finished").wait_for()
                content = page.content() + "".join(
                    page.evaluate(
                        "async (paths) => Promise.all(paths.map("
                        "async (path) => (await fetch(path)).text()))",
                        [f"/rate/{rater.token}/{path}" for path in ("sheet", "pairs/0")],
                    )
                )
                for secret in ("alpha", "omega", "captioner", "thing0.jpg", answers.study.seed):
                    assert secret not in content
        headers = [f"{r.url} {r.headers}" for r in traffic]
        assert traffic
        assert not any("alpha" in text or "omega" in text for text in headers)
        found = read_study(open_study(folder), Options())["questions"]["relevance"]
        table = httpx.get(f"{address}/blind/tables/csv").text
    for name, times in zip(("wins", "ties", "losses"), PREFERENCE.values(), strict=True):
        assert found[name]["mean"] == pytest.approx(times / PAIRS)
        assert found[name]["low"] < times / PAIRS < found[name]["high"]
    assert found["alpha"]["value"] == 1
    assert found["net"]["mean"] == pytest.approx(0.4)
    assert found["answers"] == 2 * PAIRS
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == 2 * (PAIRS + 2)
    assert {row["left_system"] for row in rows if row["check"] == "False"} == {
        *("alpha-captioner.jsonl", "omega-captioner.jsonl")
    }


def test_a_rater_comes_back_and_changes_an_answer(browser, folder):
    answers = Answers(folder)
    ann = answers.study.raters[0]
    with serving(rating_sections(folder, answers)) as address:
        with visiting(browser, f"{address}/rate/{ann.token}", 375, 700, "dark") as page:
            page.get_by_text("0 of").wait_for()
            assert page.locator("#save").is_disabled()
            page.locator("input[value=left]").check()
            page.locator("#save").click()
            page.get_by_text("1 of").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 375
        with visiting(browser, f"{address}/rate/{ann.token}") as page:
            page.get_by_text("1 of").wait_for()
            page.locator("#back").click()
            page.locator("input[value=left]:checked").wait_for()
            page.locator("input[value=tie]").check()
            page.locator("#save").click()
            page.locator("input:checked").wait_for(state="detached")
        assert answers.given(ann) == {0: {"relevance": "tie"}}


def test_links_are_the_raters_own_and_need_no_token_of_the_server(folder):
    token = "t" * 24
    answers = Answers(folder)
    ann = answers.study.raters[0]
    with (
        serving(rating_sections(folder, answers), token=token) as address,
        httpx.Client(base_url=address) as client,
    ):
        assert client.get(f"/rate/{ann.token}").status_code == 200
        assert client.get("/assets/rate.js").status_code == 200
        assert client.get(f"/rate/{ann.token}/sheet").json()["pairs"] == PAIRS + 2
        picture = client.get(f"/rate/{ann.token}/pictures/0")
        assert picture.headers["content-type"] == "image/jpeg"
        for path in ("/blind", "/blind/state", "/blind/results", "/blind/tables/csv"):
            assert client.get(path).status_code == 401
        wrong = ann.token[:-1] + ("A" if ann.token[-1] != "A" else "B")
        for path in ("sheet", "pairs/0", "pictures/0"):
            assert client.get(f"/rate/{wrong}/{path}").status_code == 404
        for path in ("pairs/999", "pictures/999", "pictures/..%2Fstudy.json"):
            assert client.get(f"/rate/{ann.token}/{path}").status_code in (404, 422)
        for body in (
            {"place": 0, "choices": {"relevance": "both"}},
            {"place": -1, "choices": {"relevance": "left"}},
            {"place": 0, "choices": {}},
        ):
            assert client.post(f"/rate/{ann.token}/answers", json=body).status_code == 422
        assert answers.given(ann) == {}
        assert "nav" in client.get(f"/rate/{ann.token}").text
        assert "/blind" not in client.get(f"/rate/{ann.token}").text


def test_the_page_of_whoever_runs_it(browser, folder):
    answers = Answers(folder)
    ben = answers.study.raters[1]
    for place in range(len(answers.sheets["Ben"])):
        answers.give(ben, place, {"relevance": "tie"})
    with (
        serving(rating_sections(folder, answers)) as address,
        visiting(browser, f"{address}/blind") as page,
    ):
        assert (
            page.get_by_text("0 of 2 right: not counted").is_visible()
            or page.get_by_text("0 of 2 right: not counted").wait_for() is None
        )
        assert page.get_by_role("link", name=f"/rate/{ben.token}").count() == 1
        assert "alpha" not in page.content()  # not before somebody asks
        ann = answers.study.raters[0]
        for place, shown in enumerate(answers.sheets["Ann"]):
            first = ("left", "right")[shown.flipped]
            answers.give(ann, place, {"relevance": first})
        page.locator("#reveal").click()
        page.get_by_text("First is alpha-captioner.jsonl").wait_for()
