"""Every caption format, read from small files written here."""

import json
from pathlib import Path

import pytest

from sightline.data.readers import read_dataset
from sightline.errors import DataError


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def karpathy(*images: dict) -> dict:
    return {"images": list(images), "dataset": "test"}


def sentences(*captions: str) -> list[dict]:
    return [{"raw": caption, "tokens": caption.split()} for caption in captions]


def coco(*images: tuple[int, str], captions: list[tuple[int, str]]) -> dict:
    return {
        "images": [{"id": number, "file_name": name} for number, name in images],
        "annotations": [{"image_id": number, "caption": text} for number, text in captions],
    }


class TestKarpathy:
    def test_pictures_captions_and_splits_in_the_order_of_the_file(self, tmp_path):
        path = write(
            tmp_path / "dataset_flickr8k.json",
            karpathy(
                {"filename": "b.jpg", "split": "train", "sentences": sentences("A dog.", "A cat.")},
                {"filename": "a.jpg", "split": "val", "sentences": sentences("A hen.")},
                {"filename": "c.jpg", "split": "test", "sentences": sentences()},
            ),
        )
        dataset = read_dataset(path)
        assert dataset.format == "karpathy"
        assert [(i.name, i.split, i.captions, i.id) for i in dataset] == [
            ("b.jpg", "train", ("A dog.", "A cat."), "b.jpg"),
            ("a.jpg", "dev", ("A hen.",), "a.jpg"),
            ("c.jpg", "test", (), "c.jpg"),
        ]
        assert dataset.images[0].picture == tmp_path / "b.jpg"

    def test_coco_numbers_parts_and_restval(self, tmp_path):
        (tmp_path / "images" / "val2014").mkdir(parents=True)
        record = {"filepath": "val2014", "filename": "a.jpg", "cocoid": 77, "split": "restval"}
        write(tmp_path / "dataset_coco.json", karpathy(record | {"sentences": sentences("x")}))
        image = read_dataset(tmp_path).images[0]
        assert (image.id, image.split) == (77, "train")
        assert image.picture == tmp_path / "images" / "val2014" / "a.jpg"

    def test_parts_beside_the_annotations_folder(self, tmp_path):
        (tmp_path / "train2014").mkdir()
        record = {"filepath": "train2014", "filename": "a.jpg", "sentences": sentences("x")}
        write(tmp_path / "annotations" / "dataset_coco.json", karpathy(record))
        assert read_dataset(tmp_path).images[0].picture == tmp_path / "train2014" / "a.jpg"

    def test_images_option_wins_over_the_folder_beside(self, tmp_path):
        (tmp_path / "images").mkdir()
        (tmp_path / "elsewhere").mkdir()
        path = write(
            tmp_path / "dataset_x.json",
            karpathy({"filename": "a.jpg", "sentences": sentences("x")}),
        )
        assert read_dataset(path).images[0].picture == tmp_path / "images" / "a.jpg"
        chosen = read_dataset(path, tmp_path / "elsewhere").images[0].picture
        assert chosen == tmp_path / "elsewhere" / "a.jpg"


class TestCoco:
    def test_one_file_with_a_caption_of_no_picture_and_a_picture_of_no_caption(self, tmp_path):
        path = write(
            tmp_path / "captions_val2014.json",
            coco((1, "a.jpg"), (2, "b.jpg"), captions=[(1, "one"), (9, "lost"), (1, "two")]),
        )
        dataset = read_dataset(path)
        assert [(i.name, i.captions, i.split, i.id) for i in dataset] == [
            ("a.jpg", ("one", "two"), "dev", 1),
            ("b.jpg", (), "dev", 2),
        ]
        assert dataset.orphans == (("9", "lost"),)

    def test_a_folder_with_several_files_and_a_picture_folder_for_each(self, tmp_path):
        for part in ("train2014", "val2014"):
            (tmp_path / part).mkdir()
            content = coco((1, f"{part}.jpg"), captions=[(1, part)])
            write(tmp_path / "annotations" / f"captions_{part}.json", content)
        dataset = read_dataset(tmp_path)
        assert [(i.split, i.picture.relative_to(tmp_path).as_posix()) for i in dataset] == [
            ("train", "train2014/train2014.jpg"),
            ("dev", "val2014/val2014.jpg"),
        ]

    def test_test_in_latest_is_no_split(self, tmp_path):
        path = write(tmp_path / "latest.json", coco((1, "a.jpg"), captions=[(1, "x")]))
        assert read_dataset(path).images[0].split is None


class TestFlickr8k:
    @pytest.fixture
    def folder(self, tmp_path):
        write(tmp_path / "Flickr8k.token.txt", "a.jpg#0\tA dog .\na.jpg#1\tIt runs .\nb.jpg#0\tB\n")
        write(tmp_path / "Flickr_8k.trainImages.txt", "a.jpg\nonly-listed.jpg\n")
        write(tmp_path / "Flickr_8k.testImages.txt", "a.jpg\r\n")
        (tmp_path / "Flicker8k_Dataset").mkdir()
        return tmp_path

    def test_captions_and_lists(self, folder):
        dataset = read_dataset(folder)
        assert [(i.name, i.captions, i.split) for i in dataset] == [
            ("a.jpg", ("A dog .", "It runs ."), "train"),  # named by two lists: once in each
            ("a.jpg", ("A dog .", "It runs ."), "test"),
            ("b.jpg", ("B",), None),
            ("only-listed.jpg", (), "train"),
        ]
        assert dataset.images[0].picture == folder / "Flicker8k_Dataset" / "a.jpg"

    def test_the_file_with_lemmas_is_not_the_captions(self, folder):
        write(folder / "Flickr8k.lemma.token.txt", "a.jpg#0\tA dog run .\n")
        assert read_dataset(folder).images[0].captions == ("A dog .", "It runs .")

    def test_flickr30k_file_name(self, tmp_path):
        path = write(tmp_path / "results_20130124.token", "a.jpg#0\tA dog\n")
        assert read_dataset(path).images[0].captions == ("A dog",)
        assert read_dataset(tmp_path).images[0].captions == ("A dog",)

    def test_a_bad_line_is_named(self, tmp_path):
        path = write(tmp_path / "x.token.txt", "a.jpg#0\tgood\n\na.jpg no tab\n")
        with pytest.raises(DataError, match=r"x\.token\.txt, line 3: not 'picture"):
            read_dataset(path)


IMAGE = {"filename": "a.jpg", "sentences": sentences("x")}

MALFORMED = [
    ("dataset_x.json", "{\n  oops", "dataset_x.json: not JSON .* line 2"),
    ("dataset_x.json", [1], "neither Karpathy"),
    ("dataset_x.json", {"images": 3}, "'images' must not be int"),
    ("dataset_x.json", karpathy(IMAGE, {"sentences": []}), "image 1: 'filename' is missing"),
    ("dataset_x.json", karpathy({"filename": "a"}), "image 0: 'sentences' is missing"),
    ("dataset_x.json", karpathy(IMAGE | {"sentences": [{}]}), "image 0: 'raw' is missing"),
    ("dataset_x.json", karpathy(IMAGE | {"sentences": ["x"]}), "expected an object with 'raw'"),
    ("dataset_x.json", karpathy(IMAGE | {"split": "tset"}), "image 0: unknown split 'tset'"),
    ("dataset_x.json", karpathy(IMAGE | {"split": ["dev"]}), "image 0: unknown split"),
    ("dataset_x.json", karpathy(IMAGE | {"filepath": 3}), "'filepath' must not be int"),
    ("dataset_x.json", karpathy(), "lists no picture"),
    ("captions_x.json", {"annotations": []}, "captions_x.json: 'images' is missing"),
    ("captions_x.json", {"annotations": [{"image_id": 1}], "images": []}, "0: 'caption' is miss"),
    ("captions_x.json", {"annotations": [{"image_id": True}]}, "'image_id' must not be bool"),
    ("captions_x.json", {"annotations": [], "images": [{"id": 1}]}, "image 0: 'file_name'"),
    ("captions.jsonl", '{"image": "a.jpg", "captions": ["x"]}\n{"image"\n', "line 2: not JSON"),
    ("captions.jsonl", '{"image": "a.jpg"}', "line 1: 'captions' is missing"),
    ("captions.jsonl", '{"image": "a.jpg", "captions": "x"}', "'captions' must not be str"),
    ("captions.jsonl", '{"image": "a.jpg", "captions": [1]}', "'captions' must be a list of str"),
    ("captions.jsonl", '{"image": 1, "captions": []}', "'image' must not be int"),
    ("captions.jsonl", "[]", "line 1: expected an object"),
    ("captions.jsonl", '{"image": "a", "captions": [], "split": "x"}', "line 1: unknown split"),
    ("captions.jsonl", '{"image": "a", "captions": [], "id": []}', "'id' must not be list"),
    ("captions.jsonl", "\n\n", "lists no picture"),
    ("captions.csv", "image,caption", "not a known caption format"),
]


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_malformed_files_are_named_with_the_place(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=message) as raised:
        read_dataset(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", ["5", "null", "true", "[]"])
def test_a_caption_file_in_a_folder_that_is_no_object_is_named(tmp_path, content):
    write(tmp_path / "captions_val2014.json", content)
    with pytest.raises(DataError, match=r"captions_val2014\.json: expected an object"):
        read_dataset(tmp_path)


def test_an_empty_folder_says_what_was_expected(tmp_path):
    with pytest.raises(DataError, match=r"no caption file in this folder; expected captions\.jso"):
        read_dataset(tmp_path)


def test_several_caption_files_must_be_chosen_from(tmp_path):
    for name in ("dataset_a.json", "dataset_b.json"):
        write(tmp_path / name, karpathy(IMAGE))
    with pytest.raises(DataError, match=r"several .*dataset_a\.json, dataset_b\.json"):
        read_dataset(tmp_path)


def test_paths_that_do_not_exist(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        read_dataset(tmp_path / "nowhere")
    path = write(tmp_path / "captions.jsonl", '{"image": "a.jpg", "captions": ["x"]}')
    with pytest.raises(DataError, match="no such folder of pictures"):
        read_dataset(path, tmp_path / "nowhere")


def test_bytes_that_are_not_utf8_stay_visible_in_their_caption(tmp_path):
    path = tmp_path / "x.token.txt"
    path.write_bytes(b"a.jpg#0\tcaf\xe9\na.jpg#1\tfine\n")
    assert read_dataset(path).images[0].captions == ("caf�", "fine")


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    path = tmp_path / "captions.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"image": "a.jpg", "captions": ["x"]}\r\n')
    assert read_dataset(path).images[0].name == "a.jpg"


def test_an_empty_split_says_which_there_are(tmp_path):
    path = write(tmp_path / "captions.jsonl", '{"image": "a", "captions": [], "split": "train"}')
    dataset = read_dataset(path)
    assert len(dataset.split("train")) == 1
    with pytest.raises(DataError, match=r"split 'dev': the dataset has 'train'"):
        dataset.split("dev")


class TestOptions:
    def write(self, tmp_path):
        pictures = [(number, f"{number}.jpg") for number in range(10)]
        captions = [(number, f"caption {n} of {number}") for number in range(10) for n in range(6)]
        for split, some in (("train", pictures[:8]), ("val", pictures[8:])):
            numbers = {number for number, _ in some}
            own = [(number, text) for number, text in captions if number in numbers]
            write(tmp_path / f"captions_{split}2017.json", coco(*some, captions=own))
        return tmp_path

    def test_dev_is_taken_from_train_and_what_was_dev_is_test(self, tmp_path):
        folder = self.write(tmp_path)
        plain, split = read_dataset(folder), read_dataset(folder, dev_from_train=3)
        assert [image.name for image in split] == [image.name for image in plain]
        assert [image.name for image in split.split("test")] == ["8.jpg", "9.jpg"]
        assert len(split.split("train")) == 5
        dev = {image.name for image in split.split("dev")}
        assert len(dev) == 3
        assert dev < {image.name for image in plain.split("train")}
        assert split == read_dataset(folder, dev_from_train=3)

    def test_a_split_that_cannot_be_is_refused(self, tmp_path):
        folder = self.write(tmp_path)
        with pytest.raises(DataError, match="8 of 8 training pictures leave none to train on"):
            read_dataset(folder, dev_from_train=8)
        with pytest.raises(DataError, match="with a train and a dev split but no test split"):
            read_dataset(folder, dev_from_train=3).hold_out_dev(1)

    def test_further_captions_are_left_out_and_the_first_stay(self, tmp_path):
        folder = self.write(tmp_path)
        assert {len(image.captions) for image in read_dataset(folder)} == {6}
        five = read_dataset(folder, max_captions=5)
        assert five.images[9].captions == tuple(f"caption {n} of 9" for n in range(5))

    def test_a_part_of_the_training_pictures_is_always_the_same(self, tmp_path):
        folder = self.write(tmp_path)
        plain, few = read_dataset(folder), read_dataset(folder, train_pictures=3)
        names = [image.name for image in few.split("train")]
        assert len(names) == 3
        assert set(names) < {image.name for image in plain.split("train")}
        assert few.split("dev") == plain.split("dev")
        assert few == read_dataset(folder, train_pictures=3)
        with pytest.raises(DataError, match="there are 8 training pictures, not 9"):
            read_dataset(folder, train_pictures=9)
