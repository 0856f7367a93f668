"""The index of METEOR's data: built whole, once, and again when it must be."""

import gzip
import itertools
import os
import shutil
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from sightline.errors import CacheError, DataError
from sightline.metrics.meteor.index import Source, build, read, read_or_build

PAIRS = [("dog", "hound"), ("a lot", "many"), ("a lot of", "many"), ("dog", "puppy dog")]


def write_table(path, pairs):
    text = "".join(f"0.5\n{phrase}\n{paraphrase}\n" for phrase, paraphrase in pairs)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def write_jar(path, synsets="dog\n1 2\nmouse\n3\n", leave_out=None):
    members = {
        "synonym/english.synsets": synsets,
        "synonym/english.exceptions": "mouse\nmice\n",
        "function/english.words": "the\na\n",
        "nonbreaking/english.prefixes": "# titles\nMr\n\nNo #NUMERIC_ONLY#\n",
    }
    with zipfile.ZipFile(path, "w") as jar:
        for name, text in members.items():
            if name != leave_out:
                jar.writestr(name, text)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "meteor"
    folder.mkdir()
    write_jar(folder / "meteor.jar")
    write_table(folder / "table.gz", PAIRS)
    return Source(folder / "meteor.jar", folder / "table.gz")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "index.safetensors"


def test_what_is_built_can_be_read(source, path):
    build(source, path)
    arrays, lists = read(path)
    assert lists == {"function_words": ["the", "a"], "prefixes": {"Mr": False, "No": True}}
    starts = arrays["word_starts"]
    letters = arrays["words"].tobytes()
    words = [letters[a:b] for a, b in itertools.pairwise(starts)]
    expected = [b"a", b"dog", b"hound", b"lot", b"many", b"mice", b"mouse", b"of", b"puppy"]
    assert words == expected
    # Nodes: a 1, dog 2, hound 3, many 4, puppy 5, "a lot" 6, "puppy dog" 7, "a lot of" 8.
    assert arrays["edges"].tolist() == [0, 1, 2, 4, 8, 9 * 1 + 3, 9 * 5 + 1, 9 * 6 + 7]
    assert arrays["sources"].tolist() == [2, 6, 8]
    assert arrays["target_starts"].tolist() == [0, 2, 3, 4]
    assert arrays["targets"].tolist() == [3, 7, 4, 4]


def test_the_arrays_are_mapped_not_loaded(source, path):
    build(source, path)
    edges = read(path)[0]["edges"]
    base = edges
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not edges.flags.writeable


def test_no_index_is_no_error(path):
    assert read(path) is None


@pytest.mark.parametrize("damage", ["empty", "short", "garbage", "header only"])
def test_a_damaged_index_is_none(source, path, damage):
    build(source, path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    contents = {
        "empty": b"",
        "short": whole[:-8],
        "garbage": b"x" * 99,
        "header only": whole[:header],
    }
    path.write_bytes(contents[damage])
    assert read(path) is None


def test_the_fingerprint_follows_the_contents(source, tmp_path):
    before = source.fingerprint()
    copy = tmp_path / "copy"
    shutil.copytree(source.jar.parent, copy)
    assert Source(copy / "meteor.jar", copy / "table.gz").fingerprint() == before
    write_table(source.table, [*PAIRS[:-1], ("dog", "puppy cat")])
    changed = source.fingerprint()
    write_jar(source.jar, synsets="dog\n1 2\nmouse\n4\n")
    assert len({before, changed, source.fingerprint()}) == 3


def test_a_build_that_fails_leaves_the_old_index(source, path):
    build(source, path)
    before = path.read_bytes()
    source.table.write_bytes(source.table.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"table.gz is cut short.*pip install --force-reinstall"):
        build(source, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("contents", [b"", b"no gzip at all, nor long enough"])
def test_a_table_that_is_none(source, path, contents):
    source.table.write_bytes(contents)
    with pytest.raises(DataError, match="METEOR's data"):
        build(source, path)


def test_a_jar_without_a_word_list(source, path):
    write_jar(source.jar, leave_out="synonym/english.exceptions")
    with pytest.raises(DataError, match=r"english.exceptions"):
        source.fingerprint()
    with pytest.raises(DataError, match=r"english.exceptions"):
        build(source, path)


def test_a_cache_that_cannot_be_written(source, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match="set SIGHTLINE_CACHE"):
        read_or_build(source, tmp_path / "file" / "index.safetensors")


def start(code, *arguments):
    code = (
        "import sys; from pathlib import Path\n"
        "from sightline.metrics.meteor import index as meteor_index\n"
        "jar, table, path = map(Path, sys.argv[1:])\n"
        "source = meteor_index.Source(jar, table)\n" + code
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_reader_beside_builders_never_sees_half_an_index(source, path):
    code = "for _ in range(20): meteor_index.build(source, path)"
    builders = [start(code, source.jar, source.table, path) for _ in range(2)]
    while any(builder.poll() is None for builder in builders):
        assert not path.exists() or read(path) is not None
        time.sleep(0.005)
    assert [builder.communicate() and builder.returncode for builder in builders] == [0, 0]
    assert os.listdir(path.parent) == [path.name]


def test_of_many_who_need_an_index_one_builds_it(source, path):
    code = (
        "import time; build = meteor_index.build\n"
        "meteor_index.build = lambda *places: (time.sleep(1), build(*places))\n"
        "meteor_index.read_or_build(source, path)"
    )
    askers = [start(code, source.jar, source.table, path) for _ in range(3)]
    told = [asker.communicate()[1] for asker in askers]
    assert [asker.returncode for asker in askers] == [0, 0, 0]
    assert sum("indexing METEOR" in text for text in told) == 1
    assert read(path) is not None


def test_the_first_build_shows_progress(source, path, capsys):
    build(source, path)
    assert "indexing METEOR's paraphrases" in capsys.readouterr().err
