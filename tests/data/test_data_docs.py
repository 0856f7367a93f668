"""`docs/data.md` is true: its examples are read, its table is that of the checks."""

import json
import re
import textwrap
from pathlib import Path

import click
import pytest

from sightline.cli.main import cli
from sightline.data.boxes import read_boxes
from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.readers import read_dataset
from sightline.data.scenes import DIFFICULTIES, make_scene_dataset, write_scenes
from sightline.data.validator import KINDS, LONGEST_CAPTION

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
EXAMPLES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
CAT = (0.1, 0.2, 0.6, 0.9)  # the box that every example describes


def example(containing: str) -> str:
    (block,) = [text for _, text in EXAMPLES if containing in text]
    return block


@pytest.mark.parametrize(
    ("containing", "file"),
    [
        ("harbour.jpg", "captions.jsonl"),
        ('"raw"', "dataset_x.json"),
        ('"caption": "A', "captions_train2014.json"),
        ("#0\t", "x.token.txt"),
    ],
)
def test_caption_formats(tmp_path, containing, file):
    (tmp_path / file).write_text(example(containing))
    caption = read_dataset(tmp_path).images[0].captions[0]
    assert caption.lower().startswith("a kitten sleeps")


def test_our_boxes(tmp_path):
    record = json.loads(example('"label": "kitten"'))
    (tmp_path / "captions.jsonl").write_text(json.dumps(record))
    assert read_dataset(tmp_path).images[0].groundings == (
        Grounding("kitten", (CAT,), caption=0, span=(0, 2)),
    )


@pytest.mark.parametrize(
    ("containing", "expected"),
    [
        ('"bbox"', Grounding("cat", (CAT,))),
        ('"format": 1', Grounding("a kitten", (CAT,), 0, (0, 2))),
    ],
)
def test_other_boxes(tmp_path, containing, expected):
    (tmp_path / "boxes.json").write_text(example(containing))
    image = CaptionedImage("1.jpg", Path("1.jpg"), ("A kitten sleeps.",))
    grounded = read_boxes(tmp_path / "boxes.json", CaptionDataset((image,)))
    assert grounded.images[0].groundings == (expected,)


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_scenes(make_scene_dataset(8, 1, 1, size=32), Path("my-pictures"))
    names: dict = {}
    exec(textwrap.dedent(example("build_vocabulary")), names)
    assert sum(len(batch) for batch in names["batches"].epoch(3)) == 8 * 5


def test_commands_and_options_exist():
    lines = [line for language, text in EXAMPLES if language == "sh" for line in text.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        program, *words = line.split()
        assert program == "sightline"
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
            assert command is not None, line
        options = [word for word in words if word.startswith("--")]
        known = [option for parameter in command.params for option in parameter.opts]
        assert set(options) <= set(known), line


def test_every_kind_of_finding_and_difficulty_is_described():
    for kind in KINDS:
        assert kind.remedy.split(",")[0].split(" where")[0].split(";")[0] in PAGE, kind
    assert f"over {LONGEST_CAPTION} tokens" in PAGE
    assert all(f"`{name}`" in PAGE for name in DIFFICULTIES)
