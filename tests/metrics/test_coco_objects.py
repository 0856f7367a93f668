import pytest

from sightline.metrics.coco_objects import CATEGORIES, WORDS, mentions


def named(caption):
    return [(mention.words, set(mention.categories)) for mention in mentions(caption)]


def test_there_are_the_80_categories_and_each_is_its_own_word():
    assert len(CATEGORIES) == 80
    for category in CATEGORIES:
        if category not in ("sports ball", "orange"):
            assert named(f"a {category}") == [(category, {category} | _also(category))]


def _also(word):
    return {category for category, words in WORDS.items() if word in words}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a hot dog", [("hot dog", {"hot dog"})]),
        ("a dog eats a hot dog", [("dog", {"dog"}), ("hot dog", {"hot dog"})]),
        ("a teddy bear", [("teddy bear", {"teddy bear"})]),
        ("a stuffed animal", [("stuffed animal", {"teddy bear"})]),
        ("a baseball bat", [("baseball bat", {"baseball bat"})]),
        ("the batter is at bat", [("batter", {"person"})]),
        ("a baby elephant", [("baby elephant", {"elephant"})]),
        ("a baby", [("baby", {"person"})]),
        ("a passenger train at a train station", [("passenger train", {"train"})]),
        ("toilet paper and a mouse pad", []),
        ("a wine glass", [("wine glass", {"wine glass"})]),
        ("broken glass", []),
        ("an orange cat", [("cat", {"cat"})]),
        ("an orange on a table", [("orange", {"orange"}), ("table", {"dining table"})]),
        ("some oranges", [("oranges", {"orange"})]),
        ("an orange", [("orange", {"orange"})]),
        ("a dirt bike", [("dirt bike", {"motorcycle"})]),
        ("a bike", [("bike", {"bicycle", "motorcycle"})]),
        ("a toaster oven", [("toaster oven", {"toaster", "oven"})]),
        ("carrot cake", [("carrot cake", {"cake"})]),
        ("a guy in a skirt", [("guy", {"person"})]),
    ],
)
def test_names_in_captions(caption, expected):
    assert named(caption) == expected


@pytest.mark.parametrize(
    ("plural", "category"),
    [
        ("people", "person"),
        ("men", "person"),
        ("firemen and policemen", "person"),
        ("children", "person"),
        ("babies", "person"),
        ("knives", "knife"),
        ("mice", "mouse"),
        ("benches", "bench"),
        ("buses", "bus"),
        ("geese", "bird"),
        ("wine glasses", "wine glass"),
        ("fire hydrants", "fire hydrant"),
        ("Hot Dogs!", "hot dog"),
    ],
)
def test_plurals_and_case(plural, category):
    assert mentions(plural)[-1].categories == {category}
