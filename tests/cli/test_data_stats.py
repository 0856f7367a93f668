"""`sightline data stats`."""

import json

import pytest
from click.testing import CliRunner

from sightline.cli.main import cli


def run(*arguments):
    return CliRunner().invoke(cli, ["data", "stats", *map(str, arguments)])


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "captions.jsonl"
    record = {"image": "a.jpg", "captions": ["a dog", "a red dog runs"], "split": "train"}
    path.write_text(json.dumps(record))
    return path


def test_tables(captions):
    result = run(captions)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["train", "1", "2", "3.0", "0"] in lines
    assert ["2", "1", "█" * 40] in lines
    assert ["1", "4", "100.00", "%"] in lines
    assert ["2", "2", "66.67", "%"] in lines


def test_json_and_figure(captions, tmp_path):
    result = run(captions, "--json", "--figure", tmp_path / "stats.svg")
    content = json.loads(result.stdout)
    assert content["splits"]["train"]["captions"] == 2
    assert content["lengths"] == {"2": 1, "4": 1}
    assert (tmp_path / "stats.svg").read_text().startswith("<?xml")


def test_long_captions_share_a_line(tmp_path):
    path = tmp_path / "captions.jsonl"
    captions = ["dog " * length for length in range(1, 101)]
    path.write_text(json.dumps({"image": "a.jpg", "captions": captions}))
    lines = [line.split() for line in run(path).stdout.splitlines()]
    histogram = [line for line in lines if line and "█" in line[-1]]
    assert len(histogram) <= 20
    assert sum(int(line[1]) for line in histogram) == 100


@pytest.mark.parametrize("captions", [[], [""]])
def test_a_dataset_with_nothing_to_count(tmp_path, captions):
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps({"image": "a.jpg", "captions": captions}))
    assert run(path, "--figure", tmp_path / "stats.png").exit_code == 0
