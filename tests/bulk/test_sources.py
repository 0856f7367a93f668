"""Sources: every way to name pictures gives them in a fixed order, or one clear error."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

import sightline
from sightline.bulk.items import Item
from sightline.bulk.sources import Source, from_stream, open_source
from sightline.errors import ConfigError, DataError, PictureError


def names(source: Source) -> list[str]:
    return [item.name for item in source]


def test_a_folder_is_listed_by_name_below_it_and_with_what_cannot_be_read(album):
    (album / "phone.HEIC").write_bytes(b"")
    source = open_source(album)
    inside = [item.inside for item in source]
    assert inside == sorted(inside, key=lambda name: Path(name).parts)
    assert "phone.HEIC" in inside
    assert "inner/raccoon.JPG" in inside
    assert "notes.txt" not in inside
    assert source.count() == len(inside) == 8
    assert names(source) == names(source)


def test_a_folder_that_cannot_be_listed_is_one_line(album, monkeypatch):
    def scandir(folder):
        raise FileNotFoundError(2, "No such file")

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(DataError, match=r"album: cannot be listed \(No such file"):
        open_source(album)


@pytest.mark.parametrize("suffix", ["jpg", "hif", "svg", "ico", "icns", "qoi", "pef", "mpo"])
def test_no_picture_is_passed_over_for_its_suffix(album, suffix):
    (album / "inner" / f"new.{suffix.upper()}").touch()
    assert f"inner/new.{suffix.upper()}" in [item.inside for item in open_source(album)]


def test_links_in_a_circle_end(album):
    (album / "inner" / "again").symlink_to(album)
    (album / "itself").symlink_to(album / "itself")
    assert open_source(album).count() == 7


def test_folders_elsewhere_are_followed_once(album, tmp_path):
    (tmp_path / "far" / "below").mkdir(parents=True)
    for name in ("a.jpg", "below/b.jpg"):
        (tmp_path / "far" / name).touch()
    (tmp_path / "far" / "below" / "up").symlink_to(tmp_path / "far")
    for name, target in (("1", "far/below"), ("2", "far"), ("3", "far"), ("4", "album/inner")):
        (album / name).symlink_to(tmp_path / target)
    linked = [item.inside for item in open_source(album)][:2]
    assert linked == ["1/b.jpg", "1/up/a.jpg"]
    assert open_source(album).count() == 9


def test_one_bad_place_never_stops_the_rest(captioner, album, tmp_path, monkeypatch):
    def scandir(folder, scandir=os.scandir):
        if str(folder).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    (album / "locked").mkdir()
    long = f"{5000 * 'n'}.jpg"
    tables = {
        "a.csv": f'path\n""\nhttps://example.org/a.jpg\ncat.jpg\n{long}\n',
        "b.jsonl": '{"path": "cat.jpg"}\n{"path\n[]\n{}\n{"path": "nul\\u0000"}\n{"path": null}\n',
        "c-1.csv": "path\ncat.jpg\n",
        "c-2.csv": "title\ncat.jpg\n",
        "c-3.parquet": "not one",
    }
    for name, text in tables.items():
        (album / name).write_text(text)
    for name, mode in (("d.tar", "w"), ("e.tgz", "w:gz")):
        with tarfile.open(album / name, mode) as shard:
            for picture in ("coffee.jpg", "palace.jpg"):
                shard.add(album / picture, picture)
        os.truncate(album / name, (album / name).stat().st_size * 3 // 4)
    monkeypatch.chdir(album)
    pictures = ["a.csv", "b.jsonl", "c-*", "d.tar", "e.tgz", "."]
    output, failures = tmp_path / "captions.jsonl", tmp_path / "captions.jsonl.failures.jsonl"
    options = {"captioner": captioner, "show_progress": True}
    summary = sightline.caption_all(pictures, output, **options)
    rows = [json.loads(line) for line in failures.read_text("utf-8").splitlines()]
    of_source = [row["path"] for row in rows if row["kind"] == "source"]
    assert of_source == [
        *("a.csv, row 1", "https://example.org/a.jpg"),
        *(f"b.jsonl, row {number}" for number in (2, 3, 4, 6)),
        *("c-2.csv", "c-3.parquet", "d.tar", "e.tgz", "locked"),
    ]
    others = [(row["path"], row["kind"]) for row in rows if row["kind"] != "source"]
    assert others == [(long, "missing"), ("nul\0", "missing"), ("d.tar/palace.jpg", "damaged")]
    assert "row 1 names no picture" in rows[0]["error"]
    assert "only with --allow-urls" in rows[1]["error"]
    assert (summary.captioned, summary.failed) == (9, len(rows))
    assert all("\n" not in row["error"] and row["error"] for row in rows)
    again = sightline.caption_all(pictures, output, skip_existing=True, **options)
    assert (again.captioned, again.failed) == (0, 0)
    assert failures.read_text("utf-8").count("\n") == len(rows)


def test_tables(album, tmp_path):
    paths = [album / "cat.jpg", album / "inner" / "cat.jpg"]
    (album / "list.csv").write_text("id,file_name\n1,cat.jpg\n2,inner/cat.jpg\n")
    (tmp_path / "list.jsonl").write_text("".join(f'{{"path": "{p}"}}\n' for p in paths))
    import pandas

    pandas.DataFrame({"where": [str(p) for p in paths]}).to_parquet(tmp_path / "list.parquet")
    expected = [str(path) for path in paths]
    assert names(open_source(album / "list.csv")) == expected
    assert names(open_source(tmp_path / "list.jsonl")) == expected
    assert names(open_source(tmp_path / "list.parquet", column="where")) == expected
    with pytest.raises(DataError, match=r"which column holds the paths\? Name it with --column"):
        open_source(tmp_path / "list.parquet")
    with pytest.raises(DataError, match="has no column 'x'; its columns are id, file_name"):
        open_source(album / "list.csv", column="x")


def test_pictures_in_a_table_of_datasets(album, tmp_path):
    import datasets

    rows = [{"image": str(album / "cat.jpg")}, {"image": str(album / "palace.jpg")}]
    features = datasets.Features({"image": datasets.Image()})
    table = datasets.Dataset.from_list(rows, features=features)
    table = table.map(lambda row: row, features=features)
    embedded = table.with_format("arrow").map(
        datasets.table.embed_table_storage, batched=True, keep_in_memory=True
    )
    embedded.to_parquet(tmp_path / "images.parquet")
    first, second = open_source(tmp_path / "images.parquet")
    assert first.read() == (album / "cat.jpg").read_bytes()
    assert second.read() == (album / "palace.jpg").read_bytes()
    assert first.name != second.name


def test_pictures_in_a_table_are_not_read_to_count_them_and_few_are_held(tmp_path, monkeypatch):
    import pandas
    from pyarrow.parquet import ParquetFile

    sizes, read = [], ParquetFile.iter_batches
    monkeypatch.setattr(
        ParquetFile, "iter_batches", lambda f, n, **kw: sizes.append(n) or read(f, n, **kw)
    )
    for name, cells in (("a", 40 * [b"picture"]), ("b", 40 * [{"bytes": b"picture"}])):
        pandas.DataFrame({"image": cells}).to_parquet(tmp_path / f"{name}.parquet")
    source = Source([tmp_path / "*.parquet"])
    assert source.count() == 80
    assert sizes == []
    assert len(list(source)) == 80
    assert max(sizes) <= 16


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz"])
def test_shards_of_webdataset(album, tmp_path, suffix):
    import webdataset

    shard = tmp_path / f"shard-000000{suffix}"
    content = {n: (album / f"{n}.jpg").read_bytes() for n in ("cat", "palace")}
    with webdataset.TarWriter(str(shard)) as writer:
        for name, picture in content.items():
            writer.write({"__key__": f"sub/{name}", "jpg": picture, "txt": "a text"})
    source = open_source(str(tmp_path / "shard-*"))
    assert names(source) == [f"{shard}/sub/cat.jpg", f"{shard}/sub/palace.jpg"]
    assert [item.read() for item in source] == list(content.values())


def test_a_damaged_shard_is_named(tmp_path):
    (tmp_path / "bad.tar").write_bytes(b"no tar" * 300)
    with pytest.raises(DataError, match=r"bad\.tar: cannot be read as a tar file"):
        open_source(tmp_path / "bad.tar")


def test_standard_input(album):
    picture = (album / "cat.jpg").read_bytes()
    (item,) = from_stream(io.BytesIO(picture))
    assert isinstance(item, Item)
    assert item.read() == picture
    assert from_stream(io.BytesIO(b"a b.jpg\r\nc.jpg")) == ["a b.jpg", "c.jpg"]
    assert from_stream(io.BytesIO(b"a\nb.jpg\0c.jpg\0")) == ["a\nb.jpg", "c.jpg"]
    with pytest.raises(ConfigError, match="standard input is empty"):
        from_stream(io.BytesIO(b""))


def test_names_that_are_no_text(album, tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.jpg"
    with open(path, "wb") as file:
        file.write((album / "cat.jpg").read_bytes())
    (item,) = open_source(Path(os.fsdecode(path)))
    assert item.name.encode("utf-8").endswith(rb"/caf\udce9.jpg")
    assert item.read() == (album / "cat.jpg").read_bytes()


def test_mistakes_are_found_before_any_work(album, tmp_path):
    (tmp_path / "bare").mkdir()
    for name, says in (
        (tmp_path / "bare", "no pictures in this folder"),
        (tmp_path / "*.jpg", "no picture matches this pattern"),
        (tmp_path / "no.csv", "no such table"),
        (tmp_path / "no.tar", "no such shard"),
        ("https://example.org/dog.jpg", "only with --allow-urls"),
    ):
        with pytest.raises(ConfigError, match=says):
            open_source([album, str(name)])


def test_addresses_that_were_refused_can_be_had_later(captioner, album, tmp_path):
    address = "https://example.org/dog.jpg"
    (tmp_path / "all.csv").write_text(f"url\n{address}\n")
    with pytest.raises(
        ConfigError, match=r"dog.jpg: web addresses are fetched only with --allow-urls"
    ):
        open_source(tmp_path / "all.csv")
    (tmp_path / "some.csv").write_text(f"url\n{album / 'cat.jpg'}\n{address}\n")
    _, refused = open_source(tmp_path / "some.csv")
    assert refused.error.endswith("only with --allow-urls; then --retry tries it again")


def test_links_to_folders_may_be_left_alone(album, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.jpg").touch()
    (album / "out").symlink_to(tmp_path / "private")
    followed, within = (
        [item.inside for item in Source([album], follow_links=f)] for f in (True, False)
    )
    assert set(followed) - set(within) == {"out/secret.jpg"}


def test_a_pipe_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (item,) = open_source(tmp_path)
    with pytest.raises(PictureError, match="not a regular file"):
        item.read()


@pytest.mark.parametrize("format", ["txt", "xmp"])
def test_names_that_no_file_can_have_stop_no_job(captioner, album, tmp_path, format):
    shard, output = tmp_path / "odd.tar", tmp_path / "out"
    names = [f"{300 * 'd'}/{300 * 'n'}.jpg", f"{251 * 'é'}.jpg", "nul\0.jpg", f"{800 * 'a/'}z.jpg"]
    names += [f"{251 * 'm'}.{suffix}" for suffix in ("jpg", "png", "gif")]  # would share a sidecar
    with tarfile.open(shard, "w", format=tarfile.PAX_FORMAT) as file:
        for name in names:
            member = file.gettarinfo(album / "cat.jpg")
            member.pax_headers = {"path": name}
            with (album / "cat.jpg").open("rb") as content:
                file.addfile(member, content)
    options = {"captioner": captioner, "format": format}
    summary = sightline.caption_all(shard, output, **options)
    assert (summary.captioned, summary.failed) == (7, 0)
    assert len(list(output.rglob(f"*.{format}"))) == 7
    assert (output / f"{251 * 'm'}.{format}").exists()
    assert (output / f"nul\\0.{format}").exists()
    assert sightline.caption_all(shard, output, **options).skipped == 7


def test_members_of_a_shard_cannot_lead_outside_the_output(captioner, album, tmp_path):
    shard = tmp_path / "evil.tar"
    with tarfile.open(shard, "w") as file:
        file.add(album / "cat.jpg", "../../escaped.jpg")
    output = tmp_path / "a" / "b" / "texts"
    sightline.caption_all(shard, output, captioner=captioner, format="txt")
    assert sorted(p.name for p in output.iterdir()) == ["escaped.txt"]
    assert not list(tmp_path.glob("**/escaped.txt"))[1:]
