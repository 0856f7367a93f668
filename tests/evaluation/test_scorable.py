import json

import pytest

from sightline.errors import DataError
from sightline.evaluation.scorable import read_scorable, read_training


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def jsonl(write):
    lines = [
        {"image": "a.jpg", "captions": ["a dog", "the dog"], "split": "train"},
        {"image": "b.jpg", "captions": ["a cat"], "split": "test"},
        {"image": "c.jpg", "captions": ["a man", " "], "split": "test"},
    ]
    return write("refs.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def result(image, caption="a thing"):
    return {"image_id": image, "caption": caption}


def test_coco_results_against_coco_captions(write):
    content = {
        "images": [{"id": 7, "file_name": "x.jpg"}, {"id": 8, "file_name": "y.jpg"}],
        "annotations": [
            {"id": 1, "image_id": 7, "caption": "a dog"},
            {"id": 2, "image_id": 8, "caption": "a cat"},
            {"id": 3, "image_id": 7, "caption": "the dog"},
        ],
    }
    references = write("captions_val2014.json", content)
    results = write("results.json", [result(8, "cat"), result("7", "dog")])
    scorable = read_scorable(results, [references])
    assert scorable.images == ("7", 8)
    assert scorable.candidates == ("dog", "cat")
    assert scorable.references == (("a dog", "the dog"), ("a cat",))


def test_karpathy_references_by_number_or_name_and_split(write):
    def image(name, number, split):
        sentences = [{"raw": f"a {name}"}]
        return {"filename": name, "cocoid": number, "split": split, "sentences": sentences}

    images = [image("x.jpg", 1, "train"), image("y.jpg", 2, "test"), image("z.jpg", 3, "test")]
    references = write("dataset_coco.json", {"images": images})
    results = write("results.json", [result("z.jpg"), result(2)])
    scorable = read_scorable(results, [references], "test")
    assert scorable.images == (2, "z.jpg")
    assert scorable.references == (("a y.jpg",), ("a z.jpg",))


def test_json_lines_of_both_spellings(write, jsonl):
    lines = ['{"image": "c.jpg", "captions": ["man"]}', '{"image": "b.jpg", "caption": "cat"}']
    results = write("results.jsonl", "\n".join(lines))
    scorable = read_scorable(results, [jsonl], "test")
    assert scorable.images == ("b.jpg", "c.jpg")
    assert scorable.candidates == ("cat", "man")
    assert scorable.references == (("a cat",), ("a man",))  # the empty reference is none


def test_plain_text_with_tabs_and_several_files(write):
    results = write("results.txt", "a dog\na cat\n")
    first = write("one.txt", "the dog\tdogs\nthe cat\n")
    second = write("two.txt", "\ncats\n")
    scorable = read_scorable(results, [first, second])
    assert scorable.images == (1, 2)
    assert scorable.candidates == ("a dog", "a cat")
    assert scorable.references == (("the dog", "dogs"), ("the cat", "cats"))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([result("b.jpg"), result("b.jpg"), result("c.jpg")], "more than once: picture b.jpg"),
        ([result("b.jpg", " "), result("c.jpg")], "empty caption of picture b.jpg"),
        ([result("b.jpg"), result("c.jpg"), result("q.jpg")], r"not in .*: picture q.jpg"),
        ([result("b.jpg")], "no caption of picture c.jpg"),
        ([], "contains no captions"),
        ({"b.jpg": "a cat"}, "a list of objects with 'image_id' and 'caption', found dict"),
        ([{"caption": "a"}], "record 0: 'image_id' is missing"),
        ([{"image_id": 1}], "record 0: 'caption' is missing"),
        ([{"image_id": 1, "caption": ["a"]}], "record 0: 'caption' must not be list"),
        (["a"], "record 0: expected an object"),
    ],
)
def test_results_that_do_not_fit_are_refused(write, jsonl, records, message):
    with pytest.raises(DataError, match=message):
        read_scorable(write("results.json", records), [jsonl], "test")


def test_an_error_names_the_first_few_only(write, jsonl):
    results = write("results.json", [result(f"{number}.jpg") for number in range(9)])
    with pytest.raises(DataError, match=r"picture 0\.jpg, 1\.jpg, 2\.jpg and 6 more$"):
        read_scorable(results, [jsonl])


def test_missing_pictures_of_a_dataset_with_splits_suggest_a_split(write, jsonl):
    results = write("results.json", [result("b.jpg"), result("c.jpg")])
    with pytest.raises(DataError, match=r"no caption of picture a\.jpg; choose a split"):
        read_scorable(results, [jsonl])


def test_one_picture_under_two_names_is_refused(write):
    line = {"image": "x.jpg", "id": 5, "captions": ["a dog"]}
    references = write("refs.jsonl", json.dumps(line))
    results = write("results.json", [result(5), result("x.jpg")])
    with pytest.raises(DataError, match=r"under two names: picture x\.jpg"):
        read_scorable(results, [references])


def test_references_that_do_not_fit_are_refused(write):
    lines = [{"image": "x.jpg", "captions": ["a"]}, {"image": "x.jpg", "captions": ["b"]}]
    twice = write("twice.jsonl", "\n".join(map(json.dumps, lines)))
    results = write("results.json", [result("x.jpg")])
    with pytest.raises(DataError, match=r"listed more than once: picture x\.jpg"):
        read_scorable(results, [twice])
    none = write("none.jsonl", json.dumps({"image": "x.jpg", "captions": [""]}))
    with pytest.raises(DataError, match=r"no reference for picture x\.jpg"):
        read_scorable(results, [none])


def test_a_result_has_one_caption(write, jsonl):
    results = write("results.jsonl", '{"image": "b.jpg", "captions": ["a", "b"]}')
    with pytest.raises(
        DataError, match="line 1: a result must have one caption, but 'captions' has 2"
    ):
        read_scorable(results, [jsonl], "test")


def test_but_several_may_be_asked_for(write, jsonl):
    lines = [
        '{"image": "c.jpg", "captions": ["man", "a man"]}',
        '{"image": "b.jpg", "caption": "cat"}',
    ]
    results = write("results.jsonl", "\n".join(lines))
    scorable = read_scorable(results, [jsonl], "test", several=True)
    assert scorable.samples == (("cat",), ("man", "a man"))
    assert scorable.candidates == ("cat", "man")


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        ([], "line 1: 'captions' must be a list of strings, and not empty"),
        (["a", 3], "line 1: 'captions' must be a list of strings, and not empty"),
        (["a", " "], r"empty caption of picture b\.jpg"),
    ],
)
def test_each_of_several_captions_is_looked_at(write, jsonl, captions, message):
    results = write("results.jsonl", json.dumps({"image": "b.jpg", "captions": captions}))
    with pytest.raises(DataError, match=message):
        read_scorable(results, [jsonl], "test", several=True)


def instances(*labels):
    """COCO instances: a box of each category in the picture b.jpg."""
    return {
        "images": [{"id": 5, "file_name": "b.jpg", "width": 9, "height": 9}],
        "categories": [{"id": number, "name": label} for number, label in enumerate(labels)],
        "annotations": [
            {"image_id": 5, "category_id": number, "bbox": [1, 1, 4, 4]}
            for number in range(len(labels))
        ],
    }


def test_boxes_say_which_categories_are_in_each_picture(write, jsonl):
    results = write("results.json", [result("c.jpg"), result("b.jpg")])
    boxes = write("instances_test.json", instances("cat", "hot dog"))
    scorable = read_scorable(results, [jsonl], "test", boxes=boxes)
    assert scorable.images == ("b.jpg", "c.jpg")
    assert scorable.categories == ({"cat", "hot dog"}, set())
    assert read_scorable(results, [jsonl], "test").categories is None


def test_boxes_that_do_not_fit_are_refused(write, jsonl):
    results = write("results.json", [result("c.jpg"), result("b.jpg")])
    boxes = write("boxes.json", instances("cat", "kitten"))
    with pytest.raises(DataError, match=r"boxes\.json: 'kitten' is not a COCO category"):
        read_scorable(results, [jsonl], "test", boxes=boxes)
    text = write("results.txt", "a dog\n")
    with pytest.raises(DataError, match="plain text names no pictures"):
        read_scorable(text, [text], boxes=boxes)


def test_training_captions_are_those_of_the_split_or_all(write, jsonl):
    assert read_training(jsonl) == ["a dog", "the dog"]
    assert read_training(write("training.txt", "a dog\na cat\n")) == ["a dog", "a cat"]
    unsplit = write("all.jsonl", json.dumps({"image": "x.jpg", "captions": ["a", "b"]}))
    assert read_training(unsplit) == ["a", "b"]
    other = write("dev.jsonl", json.dumps({"image": "x.jpg", "captions": ["a"], "split": "dev"}))
    with pytest.raises(DataError, match="no picture is in split 'train'"):
        read_training(other)


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ("a\nb\n", "a\n", "has 1 lines but .* has 2"),
        ("a\n\n", "a\nb\n", "empty caption in line 2"),
        ("a\nb\n", "a\n\t\n", "no reference in line 2"),
        ("", "a\n", "is empty"),
    ],
)
def test_texts_that_do_not_fit_are_refused(write, candidates, references, message):
    results = write("results.txt", candidates)
    with pytest.raises(DataError, match=message):
        read_scorable(results, [write("refs.txt", references)])


def test_plain_text_and_named_pictures_do_not_mix(write, jsonl):
    text = write("results.txt", "a dog\n")
    named = write("results.json", [result("b.jpg")])
    with pytest.raises(DataError, match="must be plain text"):
        read_scorable(text, [jsonl])
    with pytest.raises(DataError, match="names its pictures"):
        read_scorable(named, [text])
    with pytest.raises(DataError, match="names its pictures"):
        read_scorable(named, [jsonl, jsonl])
    with pytest.raises(DataError, match="plain text has no splits"):
        read_scorable(text, [text], "test")


@pytest.mark.parametrize("name", ["absent.json", "absent.jsonl", "absent.txt", "results.csv"])
def test_files_that_are_not_there_or_unknown_are_refused(tmp_path, write, jsonl, name):
    references = write("refs.txt", "a") if name.endswith("txt") else jsonl
    with pytest.raises(DataError, match=name):
        read_scorable(tmp_path / name, [references])


def test_a_broken_line_is_named(write, jsonl):
    results = write("results.jsonl", '{"image": "b.jpg", "caption": "a"}\n{"image": ')
    with pytest.raises(DataError, match="line 2: not JSON"):
        read_scorable(results, [jsonl])
