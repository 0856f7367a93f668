"""Files are written whole or not at all."""

import json
import os
from pathlib import Path

import pytest

from sightline.errors import ConfigError
from sightline.files import (
    BusyError,
    atomic_write,
    cache_folder,
    expand,
    one_writer,
    read_bytes,
    remove_strays,
)


def interrupted(path: Path) -> None:
    with atomic_write(path) as file:
        file.write("half")
        raise KeyboardInterrupt


def test_text_is_utf8_and_bytes_are_bytes(tmp_path):
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("café")
    assert (tmp_path / "a.txt").read_bytes() == "café".encode()
    with atomic_write(tmp_path / "a.bin", "wb") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\xff"


def test_half_of_a_surrogate_pair_is_written_out(tmp_path):
    with atomic_write(tmp_path / "a.json") as file:
        json.dump("a cat \ud83d", file, ensure_ascii=False)
    assert json.loads((tmp_path / "a.json").read_bytes()) == "a cat \ud83d"


def test_until_the_end_the_old_file_is_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_folders_are_made(tmp_path):
    with atomic_write(tmp_path / "new" / "folder" / "a.txt") as file:
        file.write("x")
    assert (tmp_path / "new" / "folder" / "a.txt").read_text() == "x"


def test_permissions_are_those_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a.txt") as file:
            file.write("x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_contents_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda fd: (done.append("fsync"), fsync(fd)))
    monkeypatch.setattr("os.replace", lambda a, b: (done.append("replace"), replace(a, b)))
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("x")
    assert done == ["fsync", "replace"]


def test_cache_folder(monkeypatch):
    monkeypatch.setenv("SIGHTLINE_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("SIGHTLINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/sightline")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "sightline"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, says in ((tmp_path / "pipe", "not a regular"), (tmp_path, "a folder")):
        with pytest.raises(OSError, match=says):
            read_bytes(path, 10)
    (tmp_path / "eleven").write_bytes(bytes(11))
    with pytest.raises(OSError, match="larger than"):
        read_bytes(tmp_path / "eleven", 10)
    assert read_bytes(tmp_path / "eleven", 11) == bytes(11)


def test_one_process_writes_and_the_second_is_told_who(tmp_path):
    with one_writer(tmp_path):
        with pytest.raises(BusyError, match=f"process {os.getpid()} on "), one_writer(tmp_path):
            pass
        (tmp_path / "writer.json").write_text("[")
        with pytest.raises(BusyError, match="another process"), one_writer(tmp_path):
            pass
    with one_writer(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_the_longest_name_that_a_file_can_have_is_written(tmp_path):
    with atomic_write(tmp_path / (255 * "n")) as file:
        file.write("whole")
    assert [path.name for path in tmp_path.iterdir()] == [255 * "n"]


def test_strays_of_ours_are_removed_and_nothing_else(tmp_path):
    for name in (".a.json.abcd_123", ".a.json.backup-1", ".b.json.abcd1234", "a.json"):
        (tmp_path / name).touch()
    remove_strays(tmp_path, ["a.json"])
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".a.json.backup-1", ".b.json.abcd1234", "a.json"}


def test_without_a_home_there_is_one_line(monkeypatch):
    monkeypatch.delenv("SIGHTLINE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nowhere(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nowhere)
    with pytest.raises(ConfigError, match="set HOME, or SIGHTLINE_CACHE"):
        cache_folder()
    with pytest.raises(ConfigError, match="no such home folder"):
        expand("~nobody/x")
