"""Synthetic scenes: what is said of them is true, and the same every time."""

import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from sightline.data.readers import read_dataset
from sightline.data.scene_drawing import COLOURS, SHAPES
from sightline.data.scenes import DIFFICULTIES, make_scene_dataset, make_scenes, write_scenes
from sightline.errors import DataError
from sightline.text.tokenizer import tokenize


def shapes_of(scene):
    return {grounding.label for grounding in scene.groundings}


def pixels(scene, box):
    """What is inside a box."""
    picture = np.asarray(scene.picture).astype(int)
    edges = np.rint(np.array(box) * len(picture)).astype(int)
    return picture[edges[1] : edges[3], edges[0] : edges[2]].reshape(-1, 3)


@pytest.fixture(scope="module", params=DIFFICULTIES)
def scenes(request):
    return make_scenes(60, seed=3, difficulty=request.param, size=64)


class TestTruth:
    def test_spans_name_the_thing(self, scenes):
        for scene in scenes:
            for grounding in scene.groundings:
                start, end = grounding.span
                words = tokenize(scene.captions[grounding.caption])[start:end]
                assert words[-1] == grounding.label
                assert words[0] == ("an" if words[1][0] in "aeiou" else "a")
                assert words[-2] in COLOURS

    def test_every_shape_word_has_its_box(self, scenes):
        for scene in scenes:
            assert len(scene.captions) == len(set(scene.captions)) == 5
            for number, caption in enumerate(scene.captions):
                tied = [g.label for g in scene.groundings if g.caption == number]
                assert sorted(tied) == sorted(set(tokenize(caption)) & SHAPES.keys())
                assert tied

    def test_the_colour_named_is_the_colour_in_the_box(self, scenes):
        for scene in scenes:
            for grounding in scene.groundings[:2]:
                colour = tokenize(scene.captions[grounding.caption])[grounding.span[1] - 2]
                inside = pixels(scene, grounding.boxes[0])
                close = (abs(inside - COLOURS[colour]) <= 12).all(1).mean()
                assert close > 0.2, (scene.name, grounding)

    def test_the_relation_named_is_that_of_the_boxes(self, scenes):
        relations = Counter()
        for scene in scenes:
            for number, caption in enumerate(scene.captions):
                tied = [g for g in scene.groundings if g.caption == number]
                if len(tied) < 2:
                    continue
                first, second = sorted(tied, key=lambda g: g.span)
                relation = re.search("left of|right of|above|below|on the left|at the top", caption)
                axis = 0 if re.search("left|right", relation.group()) else 1
                (a,), (b,) = first.boxes, second.boxes
                if relation.group() in ("right of", "below"):
                    a, b = b, a
                assert a[axis + 2] <= b[axis], (caption, a, b)
                relations[relation.group()] += 1
        if any(len(shapes_of(scene)) == 2 for scene in scenes):
            assert len(relations) == 6

    def test_boxes_are_inside_the_picture(self, scenes):
        for scene in scenes:
            for grounding in scene.groundings:
                ((x0, y0, x1, y1),) = grounding.boxes
                assert 0 <= x0 < x1 <= 1
                assert 0 <= y0 < y1 <= 1


class TestDifficulties:
    def count(self, difficulty):
        return make_scenes(80, seed=1, difficulty=difficulty, size=48)

    def test_easy_has_one_thing(self):
        assert all(len(shapes_of(scene)) == 1 for scene in self.count("easy"))

    def test_medium_has_two_in_three_of_four(self):
        pairs = sum(len(shapes_of(scene)) == 2 for scene in self.count("medium"))
        assert 45 < pairs < 75  # of 80; four standard deviations about 60

    def test_hard_says_sizes_and_textures(self):
        for scene in self.count("hard"):
            for caption in scene.captions:
                assert re.search("small|large", caption)
                assert re.search("on a (plain|striped|checked|speckled) background$", caption)
        assert not any(
            re.search("small|large|background", caption)
            for scene in self.count("medium")
            for caption in scene.captions
        )

    def test_large_things_are_larger_than_small_ones(self):
        sizes = {"small": [], "large": []}
        for scene in self.count("hard"):
            for grounding in scene.groundings:
                words = tokenize(scene.captions[grounding.caption])
                ((x0, y0, x1, y1),) = grounding.boxes
                sizes[words[grounding.span[0] + 1]].append(max(x1 - x0, y1 - y0))
        assert max(sizes["small"]) < min(sizes["large"])

    def test_only_hard_has_grey_distractors_and_none_is_named(self):
        def grey(scene):
            picture = np.asarray(scene.picture)
            return (picture == 128).all(2).sum() > 3

        assert sum(map(grey, self.count("hard"))) > 25
        assert sum(map(grey, self.count("medium"))) == 0

    def test_an_unknown_one(self):
        with pytest.raises(DataError, match="'brutal'; choose one of easy, medium, hard"):
            make_scenes(1, seed=0, difficulty="brutal")


class TestSeeds:
    def test_scene_n_is_the_same_whatever_the_count(self):
        few, many = (make_scenes(n, seed=5, difficulty="hard", size=48) for n in (3, 8))
        for a, b in zip(few, many, strict=False):
            assert a.picture.tobytes() == b.picture.tobytes()
            assert (a.name, a.captions, a.groundings) == (b.name, b.captions, b.groundings)

    def test_seeds_and_splits_differ(self):
        pictures = [
            image.picture.tobytes()
            for seed in (0, 1)
            for image in make_scene_dataset(4, 4, 4, seed=seed, size=32)
        ]
        assert len(set(pictures)) == len(pictures) == 24


class TestBias:
    def share_of_stars(self, bias, count=320):
        scenes = make_scenes(count, seed=11, size=32, bias=bias)
        circles = [scene for scene in scenes if "circle" in shapes_of(scene)]
        stars = sum("star" in shapes_of(scene) for scene in circles)
        return stars / len(circles), (bias * (1 - bias) / len(circles)) ** 0.5

    @pytest.mark.parametrize("bias", [0.5, 0.9])
    def test_a_star_stands_beside_a_circle_that_often(self, bias):
        share, deviation = self.share_of_stars(bias)
        assert abs(share - bias) < 4 * deviation

    @pytest.mark.parametrize("bias", [0.0, 1.0])
    def test_never_and_always(self, bias):
        assert self.share_of_stars(bias, 150)[0] == bias

    def test_in_training_only(self):
        dataset = make_scene_dataset(150, 150, 150, size=32, bias=1.0)
        shares = {}
        for split in ("train", "dev", "test"):
            circles = [shapes_of(i) for i in dataset.split(split) if "circle" in shapes_of(i)]
            shares[split] = sum("star" in shapes for shapes in circles) / len(circles)
        assert shares["train"] == 1
        assert 0.1 < shares["dev"] < 0.9
        assert 0.1 < shares["test"] < 0.9

    def test_stars_also_come_without_a_circle(self):
        scenes = make_scenes(100, seed=2, size=32, bias=0.9)
        assert any("star" in shapes_of(s) and "circle" not in shapes_of(s) for s in scenes)

    def test_means_nothing_with_one_thing(self):
        with pytest.raises(DataError, match="bias has no meaning"):
            make_scenes(1, seed=0, difficulty="easy", bias=0.9)


def test_to_disk_and_back(tmp_path):
    dataset = make_scene_dataset(3, 1, 2, difficulty="hard", size=48)
    path = write_scenes(dataset, tmp_path / "scenes")
    assert path == tmp_path / "scenes" / "captions.jsonl"
    again = read_dataset(tmp_path / "scenes")
    assert [image.split for image in again] == ["train"] * 3 + ["dev"] + ["test"] * 2
    for before, after in zip(dataset, again, strict=True):
        assert (before.id, before.captions) == (after.id, after.captions)
        assert before.groundings == after.groundings
        with Image.open(after.picture) as picture:
            assert picture.tobytes() == before.picture.tobytes()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("two years of work")
    with pytest.raises(DataError, match="not an empty folder"):
        write_scenes(make_scene_dataset(1, 1, 1, size=32), tmp_path)
    with pytest.raises(DataError, match="not an empty folder"):
        write_scenes(make_scene_dataset(1, 1, 1, size=32), tmp_path / "thesis.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
