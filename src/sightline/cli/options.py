"""Options and output that several commands share."""

import glob
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from sightline.data.dataset import CaptionDataset
from sightline.errors import ConfigError

_Command = TypeVar("_Command", bound=Callable[..., Any])

console = Console(highlight=False)

_UNPRINTABLE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SUFFIXES = {
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
    *(".avif", ".heic", ".heif"),
}

dataset_argument = click.argument("dataset", type=click.Path(path_type=Path))
images_option = click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="Folder of the pictures, if they are not next to the caption file.",
)
boxes_option = click.option(
    "--boxes",
    type=click.Path(path_type=Path),
    help="Boxes: COCO instances_*.json, or Flickr30k Entities (folder or compact JSON).",
)
models_option = click.option(
    "--model",
    "models",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Checkpoint, training run, hf:FOLDER (a captioner of transformers), or http://… (one "
    "behind an API). Repeat for an ensemble. Default: the bundled captioner.",
)
device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Where to compute: cpu, cuda, cuda:1, mps; auto chooses the fastest available.",
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Dataset of captioned pictures. Default: the one in the run's recipe.",
)
no_repeat_option = click.option(
    "--no-repeat",
    type=click.IntRange(0),
    metavar="N",
    help="Never repeat an n-gram of N words; 0 for no limit. Default: stored with the model.",
)


def folder_option(help: str, *, required: bool = False) -> Callable[[_Command], _Command]:
    """`-o FOLDER`, for commands that write several files."""
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("-o", "--output", type=folder, required=required, help=help)


def pictures_option(help: str) -> Callable[[_Command], _Command]:
    """`--pictures N`, for commands that can do with fewer than all."""
    return click.option("--pictures", type=click.IntRange(1), help=help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def open_dataset(path: Path, images: Path | None, boxes: Path | None = None) -> CaptionDataset:
    """The dataset that a command was given."""
    from sightline.data.boxes import read_boxes
    from sightline.data.readers import read_dataset

    dataset = read_dataset(path, images)
    return dataset if boxes is None else read_boxes(boxes, dataset)


def dataset_for(
    run: Path | None, data: Path | None, images: Path | None
) -> tuple[CaptionDataset, Path | None]:
    """The dataset that was named, or that of a run; and where the run keeps its regions."""
    from sightline.recipe import load_recipe_of
    from sightline.training.recipe_data import dataset_of

    if data is not None:
        return open_dataset(data, images), None
    if run is None:
        raise ConfigError("give the dataset with --data, or a training run, whose recipe names one")
    recipe = load_recipe_of(run)
    root = recipe.encoder.cache
    return dataset_of(recipe.data), None if root is None else Path(root)


def print_json(content: Any) -> None:
    """JSON on standard output, and nothing else there."""
    sys.stdout.write(json_text(content, indent=2) + "\n")


def json_text(content: Any, indent: int | None = None) -> str:
    """JSON that can be printed.

    Signs that a terminal may act on, and halves of surrogate pairs, which are no UTF-8, are
    written as escapes.
    """
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def new_name(stem: str, taken: set[str]) -> str:
    """A name that no other file has, in any case of letters; pictures may share one.

    >>> taken = {"index"}
    >>> [new_name(stem, taken) for stem in ("dog", "Dog", "index", "dog")]
    ['dog', 'Dog-2', 'index-2', 'dog-3']
    """
    names = (stem if n == 1 else f"{stem}-{n}" for n in itertools.count(1))
    name = next(name for name in names if name.lower() not in taken)
    taken.add(name.lower())
    return name


def require_a_picture(paths: Sequence[Path], models: Sequence[Path]) -> None:
    """Fail before a captioner is loaded, if none of the pictures is there.

    (A captioner over precomputed features, which must be named, knows pictures by their names.)
    """
    from sightline.pictures import missing_picture

    if paths and not models and not any(path.exists() for path in paths):
        raise missing_picture(paths[0])


def find_pictures(names: tuple[str, ...]) -> Iterator[Path]:
    """The picture files that files, folders and patterns name, in order."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES)
            if not inside:
                raise ConfigError(f"{path}: no pictures in this folder")
            yield from inside
        elif any(sign in name for sign in "*?[") and not path.exists():
            matches = sorted(glob.glob(name, recursive=True))
            if not matches:
                raise ConfigError(f"{name}: no picture matches this pattern")
            yield from map(Path, matches)
        else:
            yield path
