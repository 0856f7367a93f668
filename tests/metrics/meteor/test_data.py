"""What METEOR knows, over a small wheel with data of our own."""

import gzip
import importlib.util
import subprocess
import sys
import zipfile

import pytest

from sightline.errors import MissingExtraError
from sightline.metrics.meteor import data as meteor_data
from sightline.metrics.meteor import index as meteor_index

SYNSETS = {
    "dog": "1 2",
    "hound": "2",
    "mouse": "3",
    "run": "4",
    "box": "5",
    "fly": "6",
    "bake": "7",
    "fireman": "8",
    "nice": "9",
    "glass": "10",
    "glas": "11",
    "as": "12",
    "a": "13",
}
PAIRS = [
    ("dog", "hound"),
    ("a lot of", "many"),
    ("dog", "big dog"),
    ("dog", "animal"),
    ("a lot", "much"),
]


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A pycocoevalcap that can be found but not imported."""
    package = tmp_path / "site" / "pycocoevalcap"
    (package / "meteor" / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('it is only data')")
    with zipfile.ZipFile(package / "meteor" / "meteor-1.5.jar", "w") as jar:
        lines = "".join(f"{word}\n{names}\n" for word, names in SYNSETS.items())
        jar.writestr("synonym/english.synsets", lines)
        jar.writestr("synonym/english.exceptions", "mouse\nmice\nrun\nran\nfly\nran\n")
        jar.writestr("function/english.words", "the\na\n")
        jar.writestr("nonbreaking/english.prefixes", "Mr\n")
    write_table(package, PAIRS)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "pycocoevalcap", raising=False)
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    return package


def write_table(package, pairs):
    text = "".join(f"0.5\n{phrase}\n{paraphrase}\n" for phrase, paraphrase in pairs)
    (package / "meteor" / "data" / "paraphrase-en.gz").write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def data(wheel):
    return meteor_data.load()


def word(data, text):
    (caption,) = data.captions([text])
    (entry,) = caption.words
    return entry


@pytest.mark.parametrize(
    ("text", "synsets"),
    [
        ("dog", {1, 2}),
        ("hound", {2}),
        ("dogs", {1, 2}),
        ("mice", {3}),  # listed
        ("ran", {4, 6}),  # listed twice
        ("boxes", {5}),
        ("flies", {6}),
        ("baking", {7}),
        ("baked", {7}),
        ("firemen", {8}),
        ("nicer", {9}),
        ("nicest", {9}),
        ("glass", {10}),  # its s is no ending
        ("as", {12}),  # too short for an ending
        ("unheard", set()),
        ("lot", set()),  # known, but only from phrases
        ("\ud800", set()),  # half a character
    ],
)
def test_synsets(data, text, synsets):
    assert word(data, text).synsets == synsets


def test_a_word_has_its_stem_and_kind(data):
    assert word(data, "running").stem == "run"
    assert word(data, "The").is_function
    assert not word(data, "dog").is_function


def test_phrases_are_found_by_start_then_length(data):
    first, second, empty = data.captions(["a lot of dog", "big dog", ""])
    assert [(p.start, p.length) for p in first.phrases] == [(0, 1), (0, 2), (0, 3), (3, 1)]
    assert [(p.start, p.length) for p in second.phrases] == [(0, 1), (0, 2), (1, 1)]
    assert empty.phrases == []
    assert first.nodes == {p.node for p in first.phrases}


def test_no_phrase_crosses_from_one_caption_to_the_next(data):
    alone = data.captions(["a lot"])[0]
    assert data.captions(["a lot", "of"])[0] == alone


def test_sources_have_their_paraphrases_in_the_order_of_the_table(data):
    caption, others = data.captions(["dog", "animal hound big dog"])
    ((phrase, targets),) = caption.sources
    node = {others.words[p.start].text: p.node for p in others.phrases}
    node["big"] = next(p.node for p in others.phrases if p.length == 2)
    assert targets == {node["hound"], node["animal"], node["big"]}
    ordered = data.in_table_order(phrase.node, frozenset([node["animal"], node["hound"]]))
    assert ordered == [node["hound"], node["animal"]]


def test_a_prefix_keeps_its_period(data):
    (caption,) = data.captions(["Mr. Dog."])
    assert [w.text for w in caption.words] == ["mr.", "dog", "."]


def test_the_index_is_built_once(wheel, monkeypatch):
    first = meteor_data.load()
    monkeypatch.setattr(meteor_index, "build", lambda *_: pytest.fail("built again"))
    assert meteor_data.load() is first
    meteor_data._open.cache_clear()
    assert word(meteor_data.load(), "dogs").synsets == {1, 2}


def test_changed_data_is_indexed_again(wheel):
    assert len(meteor_data.load().captions(["dog"])[0].sources) == 1
    write_table(wheel, [("cat", "kitten")])
    assert meteor_data.load().captions(["dog"])[0].sources == []
    assert len(meteor_data.load().captions(["cat"])[0].sources) == 1


def test_a_damaged_index_is_built_again(wheel, tmp_path):
    meteor_data.load()
    (index,) = (tmp_path / "cache").glob("*.safetensors")
    whole = index.read_bytes()
    index.write_bytes(whole[: len(whole) // 2])
    meteor_data._open.cache_clear()
    assert word(meteor_data.load(), "dogs").synsets == {1, 2}
    assert index.read_bytes() == whole


def test_what_is_remembered_is_bounded(data, monkeypatch):
    monkeypatch.setattr(meteor_data, "_REMEMBERED", 3)
    texts = ["dog hound animal", "a lot of mice", "big dog"]
    before = data.captions(texts)
    assert data.captions(texts) == before
    assert len(data._words) <= 3


def test_without_the_wheel(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"METEOR needs .*pip install 'sightline\[meteor\]'"
    ):
        meteor_data.load()


def test_a_wheel_without_the_data(wheel):
    (wheel / "meteor" / "data" / "paraphrase-en.gz").unlink()
    with pytest.raises(MissingExtraError, match=r"sightline\[meteor\]"):
        meteor_data.load()


def test_scoring_imports_neither_the_wheel_nor_torch(wheel):
    code = (
        "import sys; from sightline.metrics.meteor.scorer import meteor\n"
        "assert meteor(['a dog'], [['a hound']]).corpus > 0.5\n"
        "assert not {'torch', 'pycocoevalcap'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=wheel.parent)
