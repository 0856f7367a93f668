"""`docs/metrics.md` is true: its names are the metrics', its options the command's."""

import re
from pathlib import Path

import sightline.metrics
from sightline.cli.score import command
from sightline.metrics import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_the_table_lists_every_metric():
    table = PAGE.split("## What the numbers are")[1].split("## ")[0]
    column = [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| ")][2:]
    named = {name for cell in column for name in re.findall("`([a-z-]+)`", cell)}
    assert {name for name in named if not name.startswith("--")} == set(METRICS)


def test_every_option_on_the_page_is_one_of_the_command():
    options = {option for parameter in command.params for option in parameter.opts}
    lines = [line for line in PAGE.splitlines() if line.startswith("sightline score ")]
    used = {option for line in lines for option in re.findall(r"--[a-z-]+", line)}
    assert len(lines) >= 5
    assert used <= options


def test_every_heading_is_filled():
    sections = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
    assert min(len(section.strip()) for section in sections) > 200


def test_every_name_imported_on_the_page_is_public():
    imports = re.findall(r"^from sightline\.metrics import (.*)$", PAGE, flags=re.MULTILINE)
    names = {name.strip() for line in imports for name in line.split(",")}
    assert len(names) >= 3
    assert names <= set(sightline.metrics.__all__)
