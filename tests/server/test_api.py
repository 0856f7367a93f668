"""The API of a running server: what it answers is what the captioner says."""

import base64
import io
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from sightline.captioner import Captioner


@pytest.fixture(scope="module")
def captioner(fitted_checkpoint: Path) -> Captioner:
    return Captioner.load(fitted_checkpoint, device="cpu")


def picture(content: bytes) -> dict[str, tuple[str, bytes]]:
    return {"image": ("picture", content)}


def test_a_caption_is_that_of_the_captioner(ask, cat, captioner) -> None:
    options = {"n_best": 3, "check": "true", "avoid": ["cup"], "attention": "true"}
    answer = ask.post("/v1/caption", files=picture(cat), data=options)
    assert answer.status_code == 200, answer.text
    said = captioner.captions([cat], n_best=3, check=True, avoid=["cup"])[0]
    for given, expected in zip(answer.json()["captions"], said, strict=True):
        expected = expected.to_json()
        assert given["text"] == expected["text"]
        assert given["boxes"] == [pytest.approx(box) for box in expected["boxes"]]
        for one, other in zip(given["words"], expected["words"], strict=True):
            assert one["log_probability"] == pytest.approx(other["log_probability"], abs=1e-4)
            assert one["attention"] == pytest.approx(other["attention"], abs=1e-4)
            assert (one["support"] or {}).get("verdict") == (other["support"] or {}).get("verdict")
    plain = ask.post("/v1/caption", files=picture(cat)).json()["captions"]
    assert len(plain) == 1
    assert plain[0]["boxes"] is None
    assert all(word["support"] is None for word in plain[0]["words"])


def test_a_caption_of_ones_own_is_checked(ask, cat, captioner) -> None:
    data = {"caption": "A red Zebra on a table."}
    answer = ask.post("/v1/check", files=picture(cat), data=data).json()
    assert answer["caption"]["text"] == "a red zebra on a table"
    expected = captioner.check(cat, captioner.read(cat, data["caption"]))
    assert [
        word["support"] and word["support"]["verdict"] for word in answer["caption"]["words"]
    ] == [word.support and word.support.verdict for word in expected.words]
    assert [word["text"] for word in answer["unknown"]] == ["zebra"]


def test_an_explanation_has_maps_as_pictures_or_numbers(ask, cat, captioner) -> None:
    data = {
        "caption": "a red cat",
        "words": ["cat"],
        "why_not": ["cup@2"],
        "method": ["lrp", "attention"],
        "map_side": 40,
    }
    png = ask.post("/v1/explain", files=picture(cat), data=data).json()
    numbers = ask.post("/v1/explain", files=picture(cat), data=data | {"maps": "numbers"}).json()
    none = ask.post("/v1/explain", files=picture(cat), data=data | {"maps": "none"}).json()
    expected = captioner.report(
        cat, caption="a red cat", words=["cat"], methods=["lrp", "attention"], why_not=[("cup", 1)]
    )
    told = [(why["method"], why["word"], why["place"]) for why in png["explanations"]]
    assert told == [(why.method, why.word, why.place) for why in expected.explanations]
    assert told[:2] == [("lrp", "cat", 2), ("lrp", "cup", 1)]
    for one, other, why in zip(
        png["explanations"], numbers["explanations"], expected.explanations, strict=True
    ):
        assert one["total"] == pytest.approx(why.total, abs=1e-3)
        levels = np.asarray(Image.open(io.BytesIO(base64.b64decode(one["map"]["png"]))), float)
        values = np.array(other["map"]["values"])
        assert max(levels.shape) == 40
        assert np.abs((levels - 128) / 127 - values).max() <= 0.01
        assert np.abs(values).max() == pytest.approx(1, abs=1e-3)
    assert none["explanations"][0]["map"] is None
    assert png["unsaid"][0]["text"] == "cup"


def test_models_health_and_numbers(ask, cat) -> None:
    models = ask.get("/v1/models").json()
    assert [model["id"] for model in models["data"]] == ["checkpoint"]
    assert "contrastive_lrp" in models["methods"]
    assert ask.get("/healthz").json() == {"status": "ok"}
    ask.post("/v1/caption", files=picture(cat))
    ask.get("/nowhere/secret-name")
    text = ask.get("/metrics").text
    assert 'sightline_requests_total{route="/v1/caption",status="200"}' in text
    assert "sightline_batch_pictures_count" in text
    assert "secret-name" not in text


@pytest.mark.parametrize(
    ("path", "data", "status", "detail"),
    [
        ("/v1/caption", {"model": "nobody"}, 404, "no captioner is called 'nobody'"),
        ("/v1/caption", {"avoid": ["zebra"]}, 422, "does not know the word 'zebra'"),
        ("/v1/caption", {"n_best": "0"}, 422, "n_best"),
        ("/v1/check", {"caption": "!"}, 422, "has no words"),
        ("/v1/check", {}, 422, "caption"),
        ("/v1/explain", {"method": "lpr"}, 422, "no method is called"),
        ("/v1/explain", {"why_not": "dog@"}, 422, "give a word"),
    ],
)
def test_what_cannot_be_answered_is_a_problem(ask, cat, path, data, status, detail) -> None:
    answer = ask.post(path, files=picture(cat), data=data)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert detail in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_what_is_no_picture_is_a_problem(ask) -> None:
    for content, detail in ((b"hello there", "holds text"), (b"\xff\xd8\xff\xe0", "damaged")):
        answer = ask.post("/v1/caption", files=picture(content))
        assert answer.status_code == 422
        assert detail in answer.json()["detail"]
    bomb = io.BytesIO()
    Image.new("L", (20_000, 20_000)).save(bomb, "png")
    answer = ask.post("/v1/caption", files=picture(bomb.getvalue()))
    assert answer.status_code == 413
    assert "million pixels" in answer.json()["detail"]


def test_rotated_and_heic_pictures(ask, cat, captioner) -> None:
    """A picture that its file asks to turn is captioned as it is seen."""
    turned = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = Image.open(io.BytesIO(cat)).transpose(Image.Transpose.ROTATE_90)
    lying.save(turned, "png", exif=exif)
    upright = io.BytesIO()
    Image.open(io.BytesIO(cat)).save(upright, "png")
    texts = [
        ask.post("/v1/caption", files=picture(one.getvalue())).json()["captions"][0]
        for one in (turned, upright)
    ]
    assert texts[0] == texts[1]


def test_those_who_ask_together_are_computed_together(start, cat, captioner) -> None:
    server = start(window=0.3)
    answers: list[str] = []

    def one() -> None:
        answer = httpx.post(f"{server}/v1/caption", files=picture(cat), timeout=60)
        answers.append(answer.json()["captions"][0]["text"])

    httpx.post(f"{server}/v1/caption", files=picture(cat), timeout=60)  # loads the captioner
    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [captioner.caption(cat).text] * 6
    text = httpx.get(f"{server}/metrics").text
    batches = float(text.split("sightline_batch_pictures_count ")[1].split()[0])
    assert batches < 6  # of 7 pictures


def test_nothing_is_computed_for_a_client_that_has_gone(start, cat) -> None:
    server = start(window=0.5)
    httpx.post(f"{server}/v1/caption", files=picture(cat), timeout=60)
    with pytest.raises(httpx.TimeoutException):
        httpx.post(f"{server}/v1/caption", files=picture(cat), timeout=0.2)
    deadline = time.monotonic() + 20
    while "sightline_cancelled_total 1.0" not in httpx.get(f"{server}/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_captioners_by_name_one_in_memory(start, cat, save_captioner, tmp_path) -> None:
    paths = [save_captioner(tmp_path / str(seed), seed=seed) for seed in (1, 2)]
    server = start(*paths)
    said = {}
    for name in ("1", "2", "1"):
        answer = httpx.post(
            f"{server}/v1/caption", files=picture(cat), data={"model": name}, timeout=60
        ).json()
        assert answer["model"] == name
        said.setdefault(name, answer["captions"][0]["text"])
        assert said[name] == answer["captions"][0]["text"]
    for path, name in zip(paths, ("1", "2"), strict=True):
        assert Captioner.load(path, device="cpu").caption(cat).text == said[name]
