"""Options and output that several commands share."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sightline.data.dataset import CaptionDataset

console = Console(highlight=False)

dataset_argument = click.argument("dataset", type=click.Path(path_type=Path))
images_option = click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="Folder of the pictures, if they are not beside the caption file.",
)
boxes_option = click.option(
    "--boxes",
    type=click.Path(path_type=Path),
    help="Boxes too: COCO instances_*.json, or Flickr30k Entities (folder or compact JSON).",
)
models_option = click.option(
    "--model",
    "models",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A checkpoint or a training run; given several times, their average. Default: the one "
    "that comes with Sightline.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def open_dataset(path: Path, images: Path | None, boxes: Path | None = None) -> CaptionDataset:
    """The dataset that a command was given."""
    from sightline.data.boxes import read_boxes
    from sightline.data.readers import read_dataset

    dataset = read_dataset(path, images)
    return dataset if boxes is None else read_boxes(boxes, dataset)


def print_json(content: Any) -> None:
    """JSON on standard output, and nothing else there."""
    json.dump(content, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
