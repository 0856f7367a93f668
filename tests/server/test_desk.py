"""What the page for one's own pictures asks the server."""

import json
import os
import time

import httpx
import pytest


def explain(client: httpx.Client, cat: bytes, **fields):
    return client.stream(
        "POST", "/desk/explain", files={"image": ("cat.jpg", cat)}, data=fields, timeout=60
    )


def test_a_report_grows_and_says_how_far_it_is(ask, cat) -> None:
    with explain(ask, cat, method=["lrp", "occlusion"]) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    parts = [part for line in lines for part in ("report", "checked", "grown") if part in line]
    assert parts == ["report", "checked", "grown", "grown"]
    done = [line["done"] for line in lines]
    assert done == sorted(done)
    assert (done[0], done[-1], lines[0]["of"]) == (0, 4, 4)
    assert any(value % 1 for value in done)  # also within a method


def test_what_the_page_no_longer_waits_for_is_not_computed_to_its_end(start, cat) -> None:
    with httpx.Client(base_url=start()) as client:
        with explain(client, cat, method="lrp") as answer:
            for line in answer.iter_lines():
                if "checked" in json.loads(line):
                    break  # and the rest is not read
        deadline = time.monotonic() + 20
        while "sightline_cancelled_total 1.0" not in client.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_thumbnail_is_captioned_and_its_report_begins_with_the_verdicts(ask, cat) -> None:
    small = ask.post("/desk/caption", files={"image": ("cat.jpg", cat)}).json()
    assert any(word["verdict"] for word in small["words"])
    with ask.stream("POST", "/desk/explain", data={"kept": small["kept"]}) as answer:
        report = next(
            line["report"] for line in map(json.loads, answer.iter_lines()) if "report" in line
        )
    assert report["caption"]["text"] == small["text"]
    assert report["caption"]["tone"] == small["tone"]
    said = [word["verdict"] for word in report["words"]]
    assert said == [word["verdict"] for word in small["words"]]
    assert ask.get(f"/desk/kept/{small['kept']}").headers["content-type"] == "image/jpeg"


def test_a_folder_without_pictures_is_an_empty_one(start, tmp_path) -> None:
    answer = httpx.get(f"{start(folder=tmp_path)}/desk/about")
    assert answer.status_code == 200, answer.text


def test_a_file_whose_name_is_no_text_is_in_the_folder_with_the_others(
    start, tmp_path, cat
) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.jpg")).write_bytes(cat)
    with httpx.Client(base_url=start(folder=tmp_path)) as client:
        assert client.get("/desk/about").json()["folder"] == ["caf\\udce9.jpg"]
        assert client.get("/desk/thumbnails/0").status_code == 200


def test_a_browser_keeps_a_thumbnail_for_as_long_as_its_file_is_the_same(
    start, tmp_path, cat, examples
) -> None:
    (tmp_path / "a.jpg").write_bytes(cat)
    with httpx.Client(base_url=start(folder=tmp_path)) as client:
        first = client.get("/desk/thumbnails/0")
        assert first.headers["cache-control"] == "private, no-cache"
        known = {"If-None-Match": first.headers["etag"]}
        assert client.get("/desk/thumbnails/0", headers=known).status_code == 304
        (tmp_path / "a.jpg").write_bytes((examples / "coffee.jpg").read_bytes())
        other = client.get("/desk/thumbnails/0", headers=known)
        assert other.status_code == 200
        assert other.content != first.content


@pytest.mark.parametrize(
    ("fields", "status"), [({}, 422), ({"kept": "x"}, 410), ({"number": "0"}, 404)]
)
def test_a_picture_that_is_not_there_is_a_problem(ask, fields, status: int) -> None:
    for path in ("/desk/caption", "/desk/explain"):
        answer = ask.post(path, data=fields)
        assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert ask.get("/desk/kept/x").status_code == 410
