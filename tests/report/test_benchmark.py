"""What pages say of methods is what was measured."""

import importlib.util
from pathlib import Path

import pytest

from sightline.explain.methods import METHODS
from sightline.report import benchmark
from sightline.report.benchmark import describe_method, describe_source, read_benchmark

ROOT = Path(__file__).parents[2]


def test_the_numbers_are_those_of_the_experiment():
    specification = importlib.util.spec_from_file_location(
        "page_benchmark", ROOT / "tools" / "page_benchmark.py"
    )
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    assert read_benchmark() == tool.collect()
    assert set(read_benchmark()["methods"]) <= set(METHODS.names())


def of(mean, low):
    return {"mean": mean, "low": low, "high": 1.0, "count": 9}


def fall(mean, count):
    return {"mean": mean, "count": count}


@pytest.fixture
def two_methods(monkeypatch):
    methods = {
        "lrp": {
            "inside": of(0.296, 0.2),
            "prefers_its_box": of(0.694, 0.6),
            "pictures": 1007,
            "deletion": {"regions": fall(0.278, 6), "pixels": fall(0.419, 4)},
        },
        "attention": {
            "inside": of(0.08, 0.0),
            "prefers_its_box": of(0.75, 0.5),
            "pictures": 7,
            "deletion": {"regions": fall(0.1, 6)},
        },
    }
    chance = {"regions": fall(0.113, 6), "pixels": fall(0.182, 4)}
    numbers = {"data": "Scenes", "split": "dev", "chance": chance, "methods": methods}
    monkeypatch.setattr(benchmark, "read_benchmark", lambda: numbers)


def test_a_line_has_the_numbers_of_its_method(two_methods):
    assert describe_method("lrp") == (
        "30 points more of its map lies on the thing than chance would put there, more than of any "
        "other method. Of two things in a picture, it prefers the right one in 69 % of cases. "
        "Blurring the regions that it shows most takes 28 points from a word's probability (any "
        "regions: 11), blurring the pixels that it shows most takes 42 points from a word's "
        "probability (any pixels: 18)."
    )
    assert describe_method("attention") == (
        "8 points more of its map lies on the thing than chance would put there. Of two things in "
        "a picture, it prefers the right one in 75 % of cases, which may be chance. Blurring the "
        "regions that it shows most takes 10 points from a word's probability (any regions: 11)."
    )
    assert describe_method("occlusion") == "Not measured for that captioner."
    assert describe_source() == (
        "Measured on 1,007 photographs (9 words, 4 pairs of different things) or 7 photographs (9 "
        "words, 4 pairs of different things) of Scenes (dev split) with boxes of what words name, "
        "for the captioner that comes with Sightline; regions for 6 words and pixels for 4 words "
        "were blurred. Of another captioner, methods may rank differently."
    )


def test_the_larger_experiment_counts():
    methods = read_benchmark()["methods"]
    assert methods["contrastive_lrp"]["prefers_its_box"]["count"] == 2 * 68
    assert methods["guided_grad_cam"]["prefers_its_box"]["count"] == 2 * 15  # in no other
    assert methods["contrastive_lrp"]["deletion"]["pixels"]["mean"] == pytest.approx(
        0.366, abs=5e-4
    )
