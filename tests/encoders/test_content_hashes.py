"""Remembered content hashes: always those of the content, and read from the memo where they can."""

import multiprocessing
import os
from pathlib import Path

import pytest

from sightline.encoders import content_hashes
from sightline.encoders.content_hashes import ContentHashes, content_hash
from sightline.encoders.region_cache import Mirrored, picture_key

RECORD_BYTES = 16 + 4 * 8 + 16 + 4


@pytest.fixture(autouse=True)
def files_settle_at_once(monkeypatch):
    monkeypatch.setattr(content_hashes, "_SETTLED_NS", -(10**12))


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{number}.jpg" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 100)
    return paths


@pytest.fixture
def memo(tmp_path):
    return tmp_path / "cache" / "hashes.bin"


@pytest.fixture
def opened(monkeypatch):
    """Names of the files that are opened to be hashed."""
    names = []
    plain = content_hashes.open_regular

    def note(path, limit):
        names.append(path.name)
        return plain(path, limit)

    monkeypatch.setattr(content_hashes, "open_regular", note)
    return names


def all_of(memo, files):
    """By a process that starts now."""
    hashes = ContentHashes(memo)
    return [hashes.of(path) for path in files]


def expected(files):
    return [content_hash(path.read_bytes()) for path in files]


def test_the_memo_changes_no_key(files, memo):
    hashes = ContentHashes(memo)
    for picture in (*files, Mirrored(files[0])):
        plain = picture_key(picture)
        assert picture_key(picture, hashes) == picture_key(picture, hashes) == plain
        assert picture_key(picture, ContentHashes(memo)) == plain


def test_a_file_is_read_once(files, memo, opened):
    first = all_of(memo, files)
    assert opened == [path.name for path in files]
    assert all_of(memo, files) == first
    assert len(opened) == len(files)
    assert memo.stat().st_size == len(files) * RECORD_BYTES


def test_by_another_way_to_the_same_file(files, memo, opened, monkeypatch):
    all_of(memo, files)
    monkeypatch.chdir(files[0].parent)
    assert ContentHashes(memo).of(Path(files[0].name)) == content_hash(bytes(100))
    assert len(opened) == len(files)


@pytest.mark.parametrize("how", ["mtime", "mtime set back", "size", "another file"])
def test_a_changed_file_is_hashed_again(files, memo, how):
    before = all_of(memo, files)
    status = files[1].stat()
    content = b"x" * (101 if how == "size" else 100)
    if how == "another file":
        other = files[1].with_suffix(".new")
        other.write_bytes(content)
        os.replace(other, files[1])
    else:
        files[1].write_bytes(content)
    later = 0 if how in ("mtime set back", "another file") else 5
    os.utime(files[1], ns=(status.st_atime_ns, status.st_mtime_ns + later))
    after = all_of(memo, files)
    assert after[1] == content_hash(content) != before[1]
    assert after[:1] + after[2:] == before[:1] + before[2:]
    assert all_of(memo, files) == after


def test_a_file_that_may_still_be_written_is_not_remembered(files, memo, monkeypatch):
    monkeypatch.setattr(content_hashes, "_SETTLED_NS", 60 * 10**9)
    assert all_of(memo, files) == expected(files)
    assert not memo.exists()


def hash_everything(memo, files, gate):
    gate.wait()
    all_of(memo, files)


def test_two_processes_at_once(tmp_path, memo, opened):
    files = [tmp_path / f"{number}.jpg" for number in range(300)]
    for number, path in enumerate(files):
        path.write_bytes(b"%d" % number)
    fork = multiprocessing.get_context("fork")
    gate = fork.Barrier(2)
    processes = [fork.Process(target=hash_everything, args=(memo, files, gate)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    opened.clear()
    assert all_of(memo, files) == [content_hash(b"%d" % number) for number in range(300)]
    assert opened == []  # the two had written every record whole


@pytest.mark.parametrize("where", ["cut", "start", "path", "state", "hash", "checksum", "noise"])
def test_a_damaged_memo_is_no_error_and_gives_no_wrong_hash(files, memo, opened, where):
    all_of(memo, files)
    content = bytearray(memo.read_bytes())
    if where == "cut":
        del content[-7:]
    elif where == "start":
        del content[:7]
    elif where == "noise":
        content = bytearray(os.urandom(1000))
    else:
        content[RECORD_BYTES + {"path": 3, "state": 20, "hash": 50, "checksum": 65}[where]] ^= 1
    memo.write_bytes(content)
    right = expected(files)
    opened.clear()
    assert all_of(memo, files) == right
    assert opened
    opened.clear()
    assert all_of(memo, files) == right
    assert opened == []  # it is whole again


def test_a_memo_of_files_as_they_were_does_not_grow_forever(files, memo):
    for number in range(1, 20):
        files[0].write_bytes(bytes([number]) * 100)
        all_of(memo, files)
    assert memo.stat().st_size < 3 * len(files) * RECORD_BYTES


def test_without_a_place_for_the_memo(files, tmp_path):
    (tmp_path / "file").write_text("")
    assert all_of(tmp_path / "file" / "hashes.bin", files) == expected(files)
    assert all_of(tmp_path, files) == expected(files)  # a folder


def test_a_file_that_is_not_there(tmp_path, memo):
    with pytest.raises(FileNotFoundError):
        ContentHashes(memo).of(tmp_path / "nowhere.jpg")
