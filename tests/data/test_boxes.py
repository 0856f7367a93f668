"""Boxes of COCO and of Flickr30k Entities, their fractions computed by hand."""

import gzip
import json
from pathlib import Path

import pytest

from sightline.data.boxes import read_boxes
from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.errors import DataError

CAPTIONS = ("A dog , wet , chases the red ball .", "Two dogs .")


@pytest.fixture
def dataset():
    images = [CaptionedImage("a.jpg", Path("a.jpg"), CAPTIONS, "train", id=5)]
    images.append(CaptionedImage("b.jpg", Path("b.jpg"), ("A hen .",), "train", id=6))
    return CaptionDataset(tuple(images))


def instances(*boxes: list[float], image: int = 5, width: int = 200, height: int = 100) -> dict:
    return {
        "images": [{"id": image, "file_name": "a.jpg", "width": width, "height": height}],
        "categories": [{"id": 18, "name": "dog"}],
        "annotations": [{"image_id": image, "category_id": 18, "bbox": box} for box in boxes],
    }


def save(folder: Path, content: object) -> Path:
    path = folder / "boxes.json"
    path.write_text(json.dumps(content))
    return path


class TestInstances:
    def test_pixels_become_fractions(self, tmp_path, dataset):
        path = save(tmp_path, instances([20, 10, 100, 40], [0, 0, 200, 100]))
        a, b = read_boxes(path, dataset).images
        assert a.groundings == (
            Grounding("dog", ((0.1, 0.1, 0.6, 0.5),)),
            Grounding("dog", ((0.0, 0.0, 1.0, 1.0),)),
        )
        assert b.groundings == ()

    def test_a_picture_is_found_by_file_name_where_ids_differ(self, tmp_path, dataset):
        path = save(tmp_path, instances([0, 0, 100, 100], image=999))
        assert read_boxes(path, dataset).images[0].groundings[0].boxes == ((0.0, 0.0, 0.5, 1.0),)

    def test_boxes_without_area_are_left_out(self, tmp_path, dataset):
        path = save(tmp_path, instances([20, 10, 0, 40], [20, 10, 100, 40]))
        assert len(read_boxes(path, dataset).images[0].groundings) == 1

    def test_boxes_that_reach_over_the_edge_are_cut(self, tmp_path, dataset):
        path = save(tmp_path, instances([-20, 50, 400, 100]))
        assert read_boxes(path, dataset).images[0].groundings[0].boxes == ((0.0, 0.5, 1.0, 1.0),)


SIZE = {"width": 100, "height": 50}
BOXES = {"1": [[11, 6, 50, 25], [1, 1, 100, 50]], "2": [[51, 1, 51, 50]]}
# As wide as the caption: [A dog] , wet , chases [the red ball] .
SENTENCE = {
    "text": CAPTIONS[0],
    "phrases": [
        {"id": "1", "start": 0, "end": 2},
        {"id": "2", "start": 6, "end": 9},
        {"id": "0", "start": 3, "end": 4},
    ],
}
CORRECTED = {"text": "Three dogs .", "phrases": [{"id": "1", "start": 0, "end": 2}]}

# Counted from 1, both ends included: columns 11-50 of 100 are the fractions 0.1-0.5.
DOG = ((0.1, 0.1, 0.5, 0.5), (0.0, 0.0, 1.0, 1.0))
BALL = ((0.5, 0.0, 0.51, 1.0),)
EXPECTED = (
    Grounding("a dog", DOG, 0, (0, 2)),
    Grounding("the red ball", BALL, 0, (4, 7)),  # the commas are no tokens
    Grounding("three dogs", DOG),  # no caption says so
)


COMPACT = {
    "format": 1,
    "images": {"a.jpg": SIZE | {"boxes": BOXES, "sentences": [SENTENCE, CORRECTED]}},
}


class TestCompactEntities:
    def test_plain(self, tmp_path, dataset):
        a, b = read_boxes(save(tmp_path, COMPACT), dataset).images
        assert a.groundings == EXPECTED
        assert b.groundings == ()

    def test_gzipped(self, tmp_path, dataset):
        path = tmp_path / "boxes.json.gz"
        path.write_bytes(gzip.compress(json.dumps(COMPACT).encode()))
        assert read_boxes(path, dataset).images[0].groundings == EXPECTED

    def test_a_picture_is_found_by_its_file_name_wherever_it_lies(self, tmp_path):
        image = CaptionedImage("images/a.jpg", Path("images/a.jpg"), CAPTIONS)
        grounded = read_boxes(save(tmp_path, COMPACT), CaptionDataset((image,)))
        assert grounded.images[0].groundings == EXPECTED

    def test_a_phrase_of_punctuation_names_nothing(self, tmp_path, dataset):
        sentence = {"text": CAPTIONS[0], "phrases": [{"id": "1", "start": 2, "end": 3}]}
        content = {"format": 1, "images": {"a.jpg": SIZE | {"boxes": BOXES}}}
        content["images"]["a.jpg"]["sentences"] = [sentence]
        assert read_boxes(save(tmp_path, content), dataset).images[0].groundings == ()

    def test_cut_short(self, tmp_path, dataset):
        path = tmp_path / "boxes.json.gz"
        path.write_bytes(gzip.compress(json.dumps(COMPACT).encode())[:-20])
        with pytest.raises(DataError, match=r"boxes\.json\.gz: not a gzipped JSON file"):
            read_boxes(path, dataset)


def thing(name: str, box: tuple[int, ...] | None) -> str:
    names = ("xmin", "ymin", "xmax", "ymax")
    edges = "".join(f"<{n}>{e}</{n}>" for n, e in zip(names, box or (), strict=False))
    inner = f"<bndbox>{edges}</bndbox>" if box else "<scene>1</scene><nobndbox>0</nobndbox>"
    return f"<object><name>{name}</name>{inner}</object>"


class TestReleasedEntities:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "Annotations").mkdir()
        (tmp_path / "Sentences").mkdir()
        things = [thing("1", (11, 6, 50, 25)), thing("1", (1, 1, 100, 50))]
        things += [thing("2", (51, 1, 51, 50)), thing("3", None)]
        size = "<size><width>100</width><height>50</height><depth>3</depth></size>"
        xml = f"<annotation>{size}{''.join(things)}</annotation>"
        (tmp_path / "Annotations" / "a.xml").write_text(xml)
        (tmp_path / "Sentences" / "a.txt").write_text(
            "[/EN#1/animals A dog] , [/EN#3/scene wet] , chases [/EN#2/other/toys the red ball] .\n"
            "[/EN#1/animals Three dogs] .\n"
        )
        return tmp_path

    def test_boxes_and_spans(self, folder, dataset):
        assert read_boxes(folder, dataset).images[0].groundings == EXPECTED

    def test_broken_xml_is_named(self, folder, dataset):
        (folder / "Annotations" / "a.xml").write_text("<annotation><size>")
        with pytest.raises(DataError, match=r"a\.xml: not an Entities annotation"):
            read_boxes(folder, dataset)

    def test_a_picture_without_pixels(self, folder, dataset):
        (folder / "Annotations" / "a.xml").write_text(
            "<annotation><size><width>0</width><height>9</height></size></annotation>"
        )
        with pytest.raises(DataError, match=r"a\.xml: a picture must not be 0 pixels by 9"):
            read_boxes(folder, dataset)

    def test_a_folder_of_something_else(self, tmp_path, dataset):
        with pytest.raises(DataError, match="Annotations/ and Sentences/"):
            read_boxes(tmp_path, dataset)


def entities(**changes):
    record = {"width": 9, "height": 9, "boxes": {"1": [[1, 1, 5, 5]]}, "sentences": []}
    return {"format": 1, "images": {"a.jpg": record | changes}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 2}, "neither COCO instances nor compact Entities"),
        ([], "neither COCO instances nor compact Entities"),
        ({"format": 1, "images": {"a.jpg": {}}}, "'a.jpg': 'sentences' is missing"),
        ({"format": 1, "images": {"z.jpg": {}}}, "none of the dataset's 2 pictures"),
        (instances([1, 2, 3]), "annotations 0: a box must be four numbers"),
        (instances([1, 2, 3, "4"]), "annotations 0: a box must be four numbers"),
        (instances([1, 2, 3, 10**12]), "annotations 0: a box must be four numbers"),
        (instances([1, 2, 3, 4], width=0), "must not be 0 pixels by"),
        (instances() | {"annotations": [{"image_id": 4}]}, "0: 'category_id' is missing"),
        (instances([1, 2, 3, 4]) | {"images": []}, "annotations 0: names a picture"),
        (instances([1, 2, 3, 4]) | {"categories": [{}]}, "categories 0: 'id' is missing"),
        (instances() | {"categories": [{"id": 1, "name": ""}]}, "0: 'name' must not be blank"),
        (entities(boxes={"1": 7}), "'a.jpg': '1' must not be int"),
        (entities(boxes={"1": [[1, 2, 3]]}), "'a.jpg': a box must be four numbers"),
        (entities(sentences=[{"text": "a dog", "phrases": [{"id": 1}]}]), "'id' must not be int"),
        (entities(height=0), "must not be 9 pixels by 0"),
    ],
)
def test_malformed_box_files_are_named(tmp_path, dataset, content, message):
    path = save(tmp_path, content)
    with pytest.raises(DataError, match=message) as raised:
        read_boxes(path, dataset)
    assert str(path) in str(raised.value)


def test_no_such_file(tmp_path, dataset):
    with pytest.raises(DataError, match="no such box file"):
        read_boxes(tmp_path / "nothing.json", dataset)
