"""Jobs: what they write, and that a killed one ends with the same bytes."""

import json
import shutil
from pathlib import Path

import pytest
from tqdm import tqdm

import sightline
from sightline import extras
from sightline.bulk.formats import FORMATS
from sightline.bulk.job import Job
from sightline.bulk.output import Output
from sightline.bulk.records import model_name
from sightline.bulk.sink import Sink
from sightline.errors import ConfigError

SETTINGS = {"batch_size": 2, "workers": 1}


class Killed(BaseException):
    """Takes the process's place at the moment it is killed."""


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_rows_hold_what_one_picture_at_a_time_gives(fitted, album, tmp_path):
    output = tmp_path / "out" / "captions.jsonl"
    summary = sightline.caption_all(album, output, captioner=fitted, check=True, **SETTINGS)
    rows = rows_of(output)
    assert [Path(row["path"]).relative_to(album).as_posix() for row in rows] == [
        *("cat.jpg", "coffee.jpg", "flower.jpg", "inner/cat.jpg", "inner/raccoon.JPG"),
        *("officer.jpg", "palace.jpg"),
    ]
    for row in rows:
        caption = fitted.caption(row["path"], check=True)
        assert row["caption"] == caption.text
        assert row["log_probability"] == pytest.approx(caption.log_probability, abs=1e-4)
        assert [(w["text"], w["verdict"]) for w in row["words"]] == [
            (w.text, w.support and w.support.verdict) for w in caption.words
        ]
        assert row["unfamiliar"] == caption.unfamiliar
        assert (row["model"], row["version"]) == (model_name(fitted), sightline.__version__)
        assert "attention" not in row["words"][0]
    assert summary.captioned == 7
    assert summary.marked == sum(
        any(w["verdict"] not in (None, "seen") for w in row["words"]) for row in rows
    )
    assert sorted(path.name for path in output.parent.iterdir()) == ["captions.jsonl"]


NAMES = {"texts": "txt", "parts": "parquet-parts"}


def contents(output: Path) -> dict[str, bytes]:
    if output.is_file():
        return {"": output.read_bytes()}
    return {
        str(p.relative_to(output)): p.read_bytes() for p in sorted(output.rglob("*")) if p.is_file()
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_job_killed_at_any_moment_ends_with_the_same_bytes(
    captioner, album, tmp_path, name, monkeypatch
):
    """Killed before and after each thing that is written: a row, a sidecar, a failure, the mark."""
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    # (Beside each other: the names of `metadata` are relative to the output's folder.)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    options = {"captioner": captioner, "format": name, **SETTINGS}
    sightline.caption_all(album, whole, **options)
    from sightline.bulk import arrays, parquet, sidecars
    from sightline.bulk import output as module

    append, write = module._append, sidecars.atomic_write
    moments = {"left": 0}

    def tick() -> None:
        moments["left"] -= 1
        if moments["left"] == 0:
            raise Killed

    def append_or_die(path, content):
        tick()
        if moments["left"] == 1:
            append(path, content[: len(content) // 2])  # torn in the middle
            raise Killed
        append(path, content)

    def write_or_die(*arguments):
        tick()
        return write(*arguments)

    monkeypatch.setattr(module, "_append", append_or_die)
    for writer in (sidecars, parquet, arrays):
        monkeypatch.setattr(writer, "atomic_write", write_or_die)
    kills = 0
    for moment in range(2, 60):
        moments["left"] = moment % 6 + 2
        try:
            sightline.caption_all(album, cut, **options)
            break
        except Killed:
            kills += 1
    assert kills >= 3
    assert contents(cut) == contents(whole)
    failures = [tmp_path / f"{path.name}.failures.jsonl" for path in (cut, whole)]
    assert failures[0].read_text() == failures[1].read_text()
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith("cut")]
    assert sorted(left) == ["cut", "cut.failures.jsonl"]


@pytest.mark.parametrize("name", ["captions.jsonl", "captions.csv"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "finished"])
@pytest.mark.parametrize("written", [0, 3])
def test_a_job_killed_at_its_first_write_costs_nothing(
    captioner, album, tmp_path, name, there, written, monkeypatch
):
    """The journal is there then, and has no whole line."""
    from sightline.bulk import output as module

    output, options = tmp_path / name, {"captioner": captioner, "skip_existing": there, **SETTINGS}
    sightline.caption_all(album, output, captioner=captioner, **SETTINGS)
    whole = output.read_bytes()
    if not there:
        output.unlink()
    append = module._append

    def append_and_die(path, content):
        append(path, content[:written])
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, "_append", append_and_die)
        with pytest.raises(Killed):
            sightline.caption_all(album, output, **options)
    sightline.caption_all(album, output, **options)
    assert output.read_bytes() == whole


def test_sidecars_of_a_batch_that_was_not_completed_are_made_again(
    captioner, album, tmp_path, monkeypatch
):
    """Else the batch would lack them when it is made again, and so be another one."""
    from sightline.bulk.formats import open_format
    from sightline.bulk.sources import open_source

    (album / "palace.txt").write_text("not ours")
    job, items = Job(captioner, 2, 1), list(open_source(album))
    commits = []

    def commit_or_die(self):
        commits.append(self)
        if len(commits) == 2:  # of the first batch
            raise Killed

    commit = Output._commit
    with monkeypatch.context() as patch, Output(open_format(album, "txt")) as output:
        patch.setattr(Output, "_commit", lambda self: (commit_or_die(self), commit(self)))
        with pytest.raises(Killed):
            job.run(open_source(album), output)
    assert (album / "cat.txt").exists()
    with Output(open_format(album, "txt")) as output:
        output.begin(job.settings())
        done = [Path(item.name).name for item in items if output.has(item)]
    assert done == ["palace.jpg"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_pictures_that_would_share_a_sidecar_keep_theirs_when_a_job_goes_on(
    captioner, album, overwrite
):
    shutil.copy(album / "palace.jpg", album / "cat.png")  # would share cat.txt
    pictures, options = [album / "cat.jpg", album / "cat.png"], {"format": "txt", "batch_size": 1}
    options |= {"captioner": captioner, "overwrite": overwrite}
    with pytest.raises(Killed):
        Job(captioner, 1, 1, options={"check": False}).run(
            *_killed_after(pictures, album, "txt", overwrite)
        )
    sightline.caption_all(pictures, album, **options)
    texts = {name: (album / name).read_text() for name in ("cat.txt", "cat.png.txt")}
    assert texts == {
        "cat.txt": captioner.caption(album / "cat.jpg").text + "\n",
        "cat.png.txt": captioner.caption(album / "cat.png").text + "\n",
    }


def test_failures_are_a_table_and_are_tried_again_on_request(captioner, album, tmp_path):
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    (album / "new.jxl").write_bytes(b"\xff\x0a" + bytes(500))
    output, failures = tmp_path / "captions.jsonl", tmp_path / "failures.jsonl"
    names = [album, album / "gone.jpg"]
    options = {"captioner": captioner, "failures": failures, **SETTINGS}
    summary = sightline.caption_all(names, output, **options)
    assert (summary.captioned, summary.failed) == (7, 3)
    assert "1 .jxl" in str(summary)
    assert [(Path(row["path"]).name, row["kind"]) for row in rows_of(failures)] == [
        ("broken.jpg", "damaged"),
        ("new.jxl", "format"),
        ("gone.jpg", "missing"),
    ]
    assert all(row["path"] in row["error"] for row in rows_of(failures))
    shutil.copy(album / "cat.jpg", album / "broken.jpg")
    again = sightline.caption_all(names, output, retry=True, **options)
    assert (again.captioned, again.failed, again.skipped) == (1, 2, 7)
    assert Path(rows_of(output)[-1]["path"]).name == "broken.jpg"
    assert len(rows_of(failures)) == 2


@pytest.mark.filterwarnings("ignore:image file could not be identified")
def test_formats_that_are_not_read_here_are_counted_and_named(
    captioner, album, tmp_path, monkeypatch
):
    """As on a machine without the parts for HEIC and AVIF."""
    from PIL import AvifImagePlugin

    is_installed = extras.is_installed
    monkeypatch.setattr(extras, "is_installed", lambda part: part != "heic" and is_installed(part))
    monkeypatch.setattr(AvifImagePlugin, "SUPPORTED", False)
    formats = Path(__file__).parents[1] / "formats"
    shutil.copy(formats / "rotated.heic", album / "a.heic")
    shutil.copy(formats / "rotated.heic", album / "b.HIF")
    shutil.copy(formats / "small.avif", album / "c.avif")
    (album / "d.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (album / "e.ico").write_bytes(b"\0\0\1\0" + bytes(500))
    summary = sightline.caption_all(album, tmp_path / "a.jsonl", captioner=captioner, **SETTINGS)
    assert (summary.captioned, summary.failed) == (7, 5)
    assert "cannot be read here: 1 .avif, 1 .heic, 1 .hif, 1 .ico, 1 .svg" in str(summary)
    failures = rows_of(tmp_path / "a.jsonl.failures.jsonl")
    assert {row["kind"] for row in failures} == {"format"}
    assert "pip install 'sightline[heic]'" in failures[0]["error"]


def embedded(album: Path, table: Path, count: int) -> int:
    """A table with pictures in it; the size of one of them."""
    import pandas

    content = (album / "cat.jpg").read_bytes()
    pandas.DataFrame({"image": count * [content]}).to_parquet(table)
    return len(content)


def test_pictures_in_a_table_wait_only_so_many_and_are_let_go(
    captioner, album, tmp_path, monkeypatch
):
    from sightline.bulk import job as module
    from sightline.bulk.sources import open_source

    size = embedded(album, tmp_path / "table.parquet", 24)
    taken, ahead = [], []
    monkeypatch.setattr(module, "_AHEAD_BYTES", 3 * size)

    class Listed:
        def __iter__(self):
            for item in open_source(tmp_path / "table.parquet"):
                taken.append(item)
                yield item

    class Records(Sink):
        def write(self, records, failures):
            for record in records:
                assert record.item.content is None
                ahead.append(record.item)

    job = Job(captioner, batch_size=8, workers=1)
    opened = job._opened(Listed(), Records(), module.Summary(), tqdm(disable=True))
    for number, picture in enumerate(opened, 1):
        assert picture.item.content is None
        assert len(taken) - number <= 3
    assert number == len(taken) == 24
    sightline.caption_all(tmp_path / "table.parquet", Records(), captioner=captioner)
    assert len(ahead) == 24


@pytest.mark.parametrize("name", ["captions.jsonl", "captions.csv", "captions.parquet", "parts"])
def test_skip_existing_captions_what_is_new_or_has_changed(captioner, album, tmp_path, name):
    output = tmp_path / name
    options = {"captioner": captioner, "format": NAMES.get(name), **SETTINGS}
    sightline.caption_all(album, output, **options)
    before = contents(output)
    if name != "parts":  # a folder is added to without being told
        with pytest.raises(ConfigError, match="--skip-existing adds what is new or has changed"):
            sightline.caption_all(album, output, **options)
    assert contents(output) == before
    nothing = sightline.caption_all(album, output, skip_existing=True, **options)
    assert (nothing.captioned, nothing.skipped) == (0, 7)
    shutil.copy(album / "palace.jpg", album / "cat.jpg")  # changed
    shutil.copy(album / "palace.jpg", album / "new.jpg")
    some = sightline.caption_all(album, output, skip_existing=True, **options)
    assert (some.captioned, some.skipped) == (2, 6)
    fresh = tmp_path / f"fresh-{name}"
    sightline.caption_all(album, fresh, **options)
    assert key_caption(output) == key_caption(fresh)
    replaced = sightline.caption_all(album, output, overwrite=True, **options)
    assert replaced.captioned == 8
    assert list(contents(output).values()) == list(contents(fresh).values())


def key_caption(path: Path) -> list[tuple[str, str, str]]:
    import pandas

    readers = {".jsonl": lambda p: pandas.read_json(p, lines=True), ".csv": pandas.read_csv}
    table = readers.get(path.suffix, pandas.read_parquet)(path)
    return sorted(zip(table["path"], table["sha256"], table["caption"], strict=True))


def test_pictures_whose_features_are_looked_up_have_no_hash_and_are_captioned_once(
    captioner, album, tmp_path, monkeypatch
):
    monkeypatch.setattr(captioner.encoder, "sees_pixels", False)
    options = {"captioner": captioner, "skip_existing": True, **SETTINGS}
    first = sightline.caption_all(album, tmp_path / "captions.jsonl", **options)
    again = sightline.caption_all(album, tmp_path / "captions.jsonl", **options)
    assert (first.captioned, again.captioned, again.skipped) == (7, 0, 7)


def test_another_job_does_not_mix_with_one_that_was_begun(captioner, fitted, album, tmp_path):
    output = tmp_path / "captions.jsonl"
    with pytest.raises(Killed):
        Job(captioner, 2, 1, options={"check": False}).run(*_killed_after([album], output))
    with pytest.raises(ConfigError, match="was begun with batch_size 2, not 3"):
        sightline.caption_all(album, output, captioner=captioner, batch_size=3)
    with Output(_form(output)), pytest.raises(ConfigError, match="another job is writing it"):
        sightline.caption_all(album, output, captioner=captioner, **SETTINGS)
    with pytest.raises(ConfigError, match="was begun with attention False, not True"):
        sightline.caption_all(album, output, captioner=captioner, attention=True, **SETTINGS)
    with pytest.raises(ConfigError, match="was begun with format 'jsonl', not 'csv'"):
        sightline.caption_all(album, output, captioner=captioner, format="csv", **SETTINGS)
    sightline.caption_all(album, output, captioner=captioner, batch_size=3, overwrite=True)
    assert len(rows_of(output)) == 7


@pytest.mark.parametrize("name", ["captions.csv", "captions.parquet", "parts"])
def test_rows_are_not_added_to_a_table_with_other_columns(captioner, album, tmp_path, name):
    output = tmp_path / name
    options = {"captioner": captioner, "format": NAMES.get(name), "skip_existing": True}
    sightline.caption_all(album / "cat.jpg", output, **options)
    before = contents(output)
    for other in ({"n_best": 2}, {"attention": True}):
        with pytest.raises(ConfigError, match="has other columns than this job would write"):
            sightline.caption_all(album, output, **options, **other)
        assert contents(output) == before
    assert sightline.caption_all(album, output, **options).captioned == 6


def _form(output: Path, format: str | None = None, overwrite: bool = False):
    from sightline.bulk.formats import open_format

    return open_format(output, format, overwrite=overwrite)


def _killed_after(
    pictures: list[Path], output: Path, format: str | None = None, overwrite: bool = False
):
    """A source, and a sink that dies with the second batch."""
    from sightline.bulk.sources import open_source

    sink = Output(_form(output, format, overwrite), overwrite=overwrite).__enter__()
    write = sink.write
    batches = []

    def write_or_die(records, failures):
        if batches:
            sink._lock.release()
            raise Killed
        batches.append(records)
        write(records, failures)

    sink.write = write_or_die  # type: ignore[method-assign]
    return open_source(pictures), sink


def test_a_sink_of_your_own_and_every_picture_once(captioner, album):
    names: list[str] = []

    class Names(Sink):
        def write(self, records, failures):
            names.extend(Path(record.item.name).name for record in records)

    summary = sightline.caption_all(
        [album / "cat.jpg", album / "*.jpg", album / "cat.jpg"], Names(), captioner=captioner
    )
    assert names == ["cat.jpg", "coffee.jpg", "flower.jpg", "officer.jpg", "palace.jpg"]
    assert summary.skipped == 2


def test_progress_says_what_is_done_left_skipped_failed_and_marked(fitted, album, tmp_path, capsys):
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    names = [album, album / "cat.jpg"]
    options = {"captioner": fitted, "check": True, "show_progress": True, **SETTINGS}
    summary = sightline.caption_all(names, tmp_path / "captions.jsonl", **options)
    shown = capsys.readouterr().err
    assert "9/9" in shown
    assert "pictures/s" in shown
    assert f"skipped=1, failed=1, marked={summary.marked}" in shown


def test_attention_several_captions_and_avoided_words_are_columns_on_request(
    fitted, album, tmp_path
):
    options = {"captioner": fitted, "n_best": 3, "avoid_unsupported": True, "attention": True}
    sightline.caption_all(album / "cat.jpg", tmp_path / "a.jsonl", **options)
    (row,) = rows_of(tmp_path / "a.jsonl")
    assert len(row["captions"]) == 3
    assert len(row["boxes"]) == len(row["words"][0]["attention"]) == 16
    _, best = fitted.caption_without_unsupported(
        album / "cat.jpg", fitted.caption(album / "cat.jpg", check=True)
    )
    assert best is None or row["caption"] == best.text
    assert not set(row["avoided"]) & set(row["caption"].split())
    sightline.caption_all(album / "cat.jpg", tmp_path / "a.parquet", **options)
    from pyarrow import parquet

    (same,) = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert (same["captions"], same["avoided"]) == (row["captions"], row["avoided"])
    assert same["words"][0]["attention"] == pytest.approx(row["words"][0]["attention"], rel=1e-6)
