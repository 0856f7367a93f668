"""Our own format: what is written is what is read."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline.data.dataset import CaptionedImage, Grounding
from sightline.data.jsonl import read_jsonl, write_jsonl
from sightline.errors import DataError

edges = st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True).map(sorted)
boxes = st.tuples(edges, edges).map(lambda e: (e[0][0], e[1][0], e[0][1], e[1][1]))
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def captioned_images(draw):
    name = draw(st.text("abcé -_", min_size=1, max_size=8)) + ".jpg"
    captions = draw(st.lists(text, max_size=4))
    groundings = []
    for label in draw(st.lists(text.filter(str.strip), max_size=3)):
        places = tuple(draw(st.lists(boxes, max_size=3)))
        tied = captions and draw(st.booleans())
        start = draw(st.integers(0, 9))
        groundings.append(
            Grounding(
                label,
                places,
                draw(st.integers(0, len(captions) - 1)) if tied else None,
                (start, start + draw(st.integers(1, 3))) if tied else None,
            )
        )
    return (
        name,
        tuple(captions),
        draw(st.sampled_from([None, "train", "dev", "test"])),
        tuple(groundings),
        draw(st.just("") | st.integers(1, 2**62) | st.text("xyz", min_size=1)),
    )


@settings(max_examples=50)
@given(st.lists(captioned_images(), max_size=3))
def test_round_trip(records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.jsonl"
        images = tuple(
            CaptionedImage(name, path.parent / name, captions, split, groundings, id)
            for name, captions, split, groundings, id in records
        )
        write_jsonl(images, path)
        assert read_jsonl(path).images == images


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0c", "\n", "\r"])
def test_only_a_newline_ends_a_line(tmp_path, separator):
    path = tmp_path / "captions.jsonl"
    image = CaptionedImage("a.jpg", tmp_path / "a.jpg", (f"a dog{separator}runs",))
    write_jsonl((image,), path)
    assert read_jsonl(path).images == (image,)


def test_pictures_elsewhere_keep_their_id_and_are_found(tmp_path):
    away = CaptionedImage("a.jpg", tmp_path / "away" / "a.jpg", ("x",))
    inside = CaptionedImage("b.jpg", tmp_path / "here" / "images" / "b.jpg", ("x",), id=7)
    path = tmp_path / "here" / "captions.jsonl"
    write_jsonl((away, inside), path)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["image"] for record in records] == [str(away.picture), "images/b.jpg"]
    read = read_jsonl(path).images
    assert [image.picture for image in read] == [away.picture, inside.picture]
    assert [image.id for image in read] == ["a.jpg", 7]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.jpg").symlink_to(tmp_path / "store" / "0123abcd")
    path = tmp_path / "here" / "captions.jsonl"
    write_jsonl((CaptionedImage("a.jpg", path.parent / "a.jpg", ()),), path)
    assert json.loads(path.read_text())["image"] == "a.jpg"


def test_a_relative_path_is_written_as_seen_from_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl((CaptionedImage("a.jpg", Path("pictures/a.jpg"), ()),), Path("captions.jsonl"))
    assert json.loads(Path("captions.jsonl").read_text())["image"] == "pictures/a.jpg"


def test_a_picture_in_memory_cannot_be_written(tmp_path):
    image = CaptionedImage("a.png", Image.new("RGB", (2, 2)), ("x",))
    with pytest.raises(DataError, match=r"a\.png: is in memory only"):
        write_jsonl((image,), tmp_path / "captions.jsonl")
    assert not (tmp_path / "captions.jsonl").exists()


WHOLE = [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("grounding", "message"),
    [
        ({"boxes": [WHOLE]}, "'label' is missing"),
        ({"label": " ", "boxes": [WHOLE]}, "'label' must not be blank"),
        ({"label": "dog"}, "'boxes' is missing"),
        ({"label": "dog", "boxes": [[0, 0, 1]]}, "four fractions"),
        ({"label": "dog", "boxes": [[0, 0, 640, 480]]}, "four fractions"),
        ({"label": "dog", "boxes": [[0.5, 0, 0.5, 1]]}, "four fractions"),
        ({"label": "dog", "boxes": [["0", 0, 1, 1]]}, "four fractions"),
        ({"label": "dog", "boxes": [WHOLE], "caption": 0}, "or neither"),
        ({"label": "dog", "boxes": [WHOLE], "span": [0, 1]}, "or neither"),
        ({"label": "dog", "boxes": [WHOLE], "caption": 1, "span": [0, 1]}, r"\(below 1\)"),
        ({"label": "dog", "boxes": [WHOLE], "caption": "0", "span": [0, 1]}, "or neither"),
        ({"label": "dog", "boxes": [WHOLE], "caption": 0, "span": [1, 1]}, "second larger"),
        ({"label": "dog", "boxes": [WHOLE], "caption": 0, "span": ["a", "b"]}, "token numbers"),
        ({"label": "dog", "boxes": [WHOLE], "caption": 0, "span": [0]}, "token numbers"),
    ],
)
def test_malformed_boxes_are_named_with_their_line(tmp_path, grounding, message):
    path = tmp_path / "captions.jsonl"
    record = {"image": "a.jpg", "captions": ["a dog"], "boxes": [grounding]}
    path.write_text("\n" + json.dumps(record))
    with pytest.raises(DataError, match=message) as raised:
        read_jsonl(path)
    assert "line 2" in str(raised.value)


def test_boxes_that_are_no_list(tmp_path):
    path = tmp_path / "captions.jsonl"
    path.write_text('{"image": "a.jpg", "captions": [], "boxes": 3}')
    with pytest.raises(DataError, match="'boxes' must not be int"):
        read_jsonl(path)
