"""What a person decided is never lost, and never overwritten by a captioner."""

import shutil
import sqlite3
import time

import pytest

from sightline.bulk.job import Job
from sightline.bulk.sources import open_source
from sightline.errors import ConfigError, DataError
from sightline.review.captioning import Captioning, ReviewSink
from sightline.review.collection import ConflictError, Review

NAMES = ["broken.jpg", "cat.jpg", "coffee.jpg", "flower.jpg", "inner/cat.jpg"]


def by_name(review):
    return {entry.name: entry for entry in review.entries()}


def test_it_is_beside_the_folder_and_lists_every_picture(review, photos):
    assert (photos.parent / "photos.review" / "review.sqlite").is_file()
    assert [entry.name for entry in review.entries()] == NAMES
    assert review.counts()["waiting"] == 5
    assert not list(photos.glob("*.sqlite*"))


def test_captions_come_from_bulk_and_doubt_orders_them(captioned, fitted):
    entries = by_name(captioned)
    for name in ("cat.jpg", "inner/cat.jpg"):
        caption = fitted.caption(captioned.folder / name, check=True)
        assert entries[name].caption == caption.text
        assert [w["text"] for w in entries[name].words] == [w.text for w in caption.words]
    assert entries["broken.jpg"].error
    assert captioned.counts()["failed"] == 1
    doubts = {
        name: fitted.caption(captioned.folder / name, check=True).doubt
        for name in NAMES
        if name != "broken.jpg"
    }
    ordered = [e.name for e in captioned.entries(captioned.order("open", "doubt"))]
    assert [round(doubts[name], 4) for name in ordered] == sorted(
        (round(doubt, 4) for doubt in doubts.values()), reverse=True
    )


def test_decisions(captioned):
    ids = {entry.name: entry.id for entry in captioned.entries()}
    accepted = captioned.decide(ids["cat.jpg"], "accepted")
    assert accepted.text == accepted.caption
    assert captioned.decide(ids["coffee.jpg"], "edited", "  a cup\n of coffee ").text == (
        "a cup of coffee"
    )
    assert captioned.decide(ids["flower.jpg"], "rejected").text is None
    assert captioned.decide(ids["broken.jpg"], "edited", "a cat").said == "a cat"
    counts = captioned.counts()
    assert [counts[n] for n in ("accepted", "edited", "rejected", "open")] == [1, 2, 1, 1]
    assert captioned.order("edited", "name") == [ids["broken.jpg"], ids["coffee.jpg"]]
    assert captioned.order("all", text="CUP of") == [ids["coffee.jpg"]]
    assert captioned.order("all", "recent")[0] == ids["broken.jpg"]
    reopened = captioned.decide(ids["coffee.jpg"], "open")
    assert (reopened.state, reopened.text) == ("open", None)
    assert captioned.texts(ids["coffee.jpg"]) == {"a cup of coffee"}  # it is still on record


def test_a_decision_on_what_is_no_longer_so_is_refused(captioned):
    entry = captioned.entries()[1]
    captioned.decide(entry.id, "edited", "mine", after=entry.decision)
    with pytest.raises(ConflictError, match="another window"):
        captioned.decide(entry.id, "accepted", after=entry.decision)
    assert captioned.entries([entry.id])[0].text == "mine"


def test_captioning_again_leaves_decisions(captioned, fitted, examples):
    ids = {entry.name: entry.id for entry in captioned.entries()}
    captioned.decide(ids["cat.jpg"], "edited", "my own words")
    captioned.decide(ids["flower.jpg"], "rejected")
    before = by_name(captioned)
    other = Job(fitted, 2, options={"check": True, "beam": 1, "max_length": 2})
    summary = other.run(open_source(captioned.folder), ReviewSink(captioned))
    assert summary.captioned == 4
    after = by_name(captioned)
    assert after["coffee.jpg"].caption != before["coffee.jpg"].caption
    assert after["cat.jpg"].text == "my own words"
    assert after["cat.jpg"].said == "my own words"
    assert after["flower.jpg"].state == "rejected"


def test_what_is_captioned_is_not_captioned_again_unless_it_changed(captioned, fitted, examples):
    job = Job(fitted, 2, options={"check": True})
    again = job.run(open_source(captioned.folder), ReviewSink(captioned))
    assert (again.captioned, again.skipped) == (0, 4)
    (captioned.folder / "cat.jpg").write_bytes((examples / "palace.jpg").read_bytes())
    assert job.run(open_source(captioned.folder), ReviewSink(captioned)).captioned == 1


def test_pictures_come_and_go(captioned, examples):
    ids = {entry.name: entry.id for entry in captioned.entries()}
    captioned.decide(ids["cat.jpg"], "edited", "kept")
    (captioned.folder / "cat.jpg").rename(captioned.folder / "new.jpg")
    captioned.scan()
    assert "cat.jpg" not in by_name(captioned)
    assert by_name(captioned)["new.jpg"].caption is None
    (captioned.folder / "new.jpg").rename(captioned.folder / "cat.jpg")
    captioned.scan()
    assert by_name(captioned)["cat.jpg"].text == "kept"


def test_the_thread_captions_and_stops(review, fitted):
    captioning = Captioning(review, lambda: fitted)
    captioning.start()
    deadline = time.monotonic() + 60
    while captioning.is_running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert captioning.error is None
    assert review.counts()["waiting"] == 0
    assert any(word["verdict"] for entry in review.entries() for word in entry.words)
    captioning.stop(wait=1)


def test_it_pauses_amid_a_batch(review, fitted, monkeypatch):
    captioning = Captioning(review, lambda: fitted)
    steps = []
    step = type(fitted.model).step

    def slow(*arguments, **options):
        steps.append(len(steps))
        captioning.stop()  # while the first words are chosen
        return step(*arguments, **options)

    monkeypatch.setattr(type(fitted.model), "step", slow)
    captioning.start()
    captioning._thread.join(30)
    assert not captioning.is_running
    assert captioning.error is None
    assert len(steps) == 1
    assert review.counts()["waiting"] == 5


def test_the_thread_says_what_went_wrong(review):
    def load():
        raise ConfigError("no such captioner")

    captioning = Captioning(review, load)
    captioning.start()
    captioning.stop(wait=30)
    assert captioning.error == "no such captioner"


def test_a_name_that_is_no_text(photos, fitted):
    import os

    odd = os.fsdecode(b"caf\xe9.jpg")
    (photos / "cat.jpg").rename(photos / odd)
    with Review(photos) as review:
        review.scan()
        Job(fitted, 2).run(open_source(photos), ReviewSink(review))
        entry = by_name(review)["caf\\udce9.jpg"]
        assert entry.caption
        assert review.path(entry.id).is_file()


def test_what_is_refused(captioned, photos, tmp_path):
    id = captioned.entries()[0].id  # the one without a caption
    for arguments in ((id, "liked"), (999, "accepted"), (id, "accepted"), (id, "edited", "  ")):
        with pytest.raises(ConfigError):
            captioned.decide(*arguments)
    with pytest.raises(ConfigError, match="more than 5000"):
        captioned.decide(id, "edited", "x" * 5001)
    for arguments in (("some",), ("all", "best")):
        with pytest.raises(ConfigError, match="is called"):
            captioned.order(*arguments)
    with pytest.raises(ConfigError, match="in use by"):
        Review(photos)
    with pytest.raises(ConfigError, match="no such folder"):
        Review(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="must not be in the folder"):
        Review(photos, photos / "state")


def test_a_file_that_is_no_review(photos, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "review.sqlite").write_text("hello " * 1000)
    with pytest.raises(DataError, match="cannot be read"):
        Review(photos, state)
    (state / "review.sqlite").unlink()
    with sqlite3.connect(state / "review.sqlite") as other:
        other.execute("PRAGMA user_version = 99")
    with pytest.raises(DataError, match="not made by this version"):
        Review(photos, state)


def test_links_lead_to_no_other_folder(photos, tmp_path):
    (tmp_path / "private").mkdir()
    shutil.copy(photos / "cat.jpg", tmp_path / "private" / "secret.jpg")
    (photos / "out").symlink_to(tmp_path / "private")
    with Review(photos) as review:
        review.scan()
        names = [entry.name for entry in review.entries()]
    assert names
    assert not any("secret" in name for name in names)
