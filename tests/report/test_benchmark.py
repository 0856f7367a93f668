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


@pytest.fixture
def two_methods(monkeypatch):
    methods = {
        "lrp": {"inside": of(0.296, 0.2), "prefers_its_box": of(0.694, 0.6)},
        "attention": {"inside": of(0.08, 0.0), "prefers_its_box": of(0.75, 0.5)},
    }
    numbers = {"data": "Scenes", "split": "dev", "pictures": 7, "words": 9, "pairs": 4}
    monkeypatch.setattr(benchmark, "read_benchmark", lambda: {**numbers, "methods": methods})


def test_a_line_has_the_numbers_of_its_method(two_methods):
    assert describe_method("lrp") == (
        "30 points more of its map lies on the thing than chance would put there, more than of any "
        "other method. Of two things in a picture, it prefers the right one in 69 % of cases."
    )
    assert describe_method("attention") == (
        "8 points more of its map lies on the thing than chance would put there. Of two things in "
        "a picture, it prefers the right one in 75 % of cases, which may be chance."
    )
    assert describe_method("occlusion") == "Not measured for that captioner."
    source = describe_source()
    assert source.startswith("Measured on 7 photographs of Scenes (dev split)")
    assert "for the captioner that comes with Sightline: 9 words, 4 pairs of different" in source
    assert source.endswith("Of another captioner, methods may rank differently.")
