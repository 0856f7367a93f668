"""The README and the pages on training, explaining and support are true: what they name exists."""

import re
import shlex
from pathlib import Path

import click
import pytest

from sightline.cli.main import cli
from sightline.recipes import shipped_recipes

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{page}.md" for page in ("training", "explain", "support", "tour")),
]


def commands(page: Path) -> list[str]:
    """Every `sightline …` that a reader could copy, from code blocks and from tables."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", text)
    return [line for line in lines if line.startswith("sightline ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_parses(page: Path) -> None:
    found = commands(page)
    assert len(found) >= 5
    for line in found:
        command: click.Command = cli
        context = click.Context(cli)
        arguments = shlex.split(line)[1:]
        while isinstance(command, click.Group) and arguments:
            name, resolved, arguments = command.resolve_command(context, arguments)
            assert resolved is not None, line
            command = resolved
            context = click.Context(command, info_name=name)
        if arguments:
            command.parse_args(context, arguments)  # raises a usage error for what does not exist


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_it_points_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    assert len(targets) >= 3
    for target in targets:
        assert (page.parent / target).is_file(), target
    for recipe in re.findall(r"\b(?:coco|flickr8k|scenes)/[a-z]\w+\b(?!\.)", text):
        assert recipe in shipped_recipes()


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"^make (\w+)$", readme, re.MULTILINE)
    assert named == ["demo", "test"]
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
