"""`sightline experiment`."""

from pathlib import Path
from typing import Any

import click

from sightline.cli.options import (
    boxes_option,
    data_option,
    dataset_for,
    device_option,
    images_option,
)


@click.command("experiment")
@click.argument("name", required=False)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True, help="Split of the dataset to use.")
@data_option
@images_option
@boxes_option
@device_option
@click.option(
    "--pictures",
    type=click.IntRange(1),
    help="Use only the first pictures of the split, this many. Default: all.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the experiment, such as methods=[lrp,attention]. Repeat for several.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for table.md, figure.png, figure.svg and data.json.",
)
def command(
    name: str | None,
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    device: str,
    pictures: int | None,
    settings: tuple[str, ...],
    output: Path | None,
) -> None:
    """Run the experiment NAME on training RUNS, or list the experiments.

    Without RUNS, the bundled captioner is used. An experiment that was interrupted goes on where it
    was if you give the same command again.
    """
    from sightline.experiments.registry import EXPERIMENTS, find_experiment

    if name is None:
        width = max(map(len, EXPERIMENTS))
        for each, (_, line) in EXPERIMENTS.items():
            click.echo(f"{each:{width}}  {line}")
        return

    from sightline.config import from_dict
    from sightline.errors import ConfigError
    from sightline.experiments.runner import run_experiment

    experiment = find_experiment(name)
    options = from_dict(experiment.options, _parse(settings), name)
    if output is None:
        raise ConfigError("give the folder for the table and the figure with -o")
    subjects = [
        _subject(run, split, data, images, boxes, device, pictures) for run in runs or (None,)
    ]
    setting = {
        "split": split,
        "pictures": {subject.name: len(subject.images) for subject in subjects},
    }
    findings = run_experiment(
        experiment, subjects, options, output, setting=setting, show_progress=True
    )
    click.echo(findings.table, nl=False)


def _subject(
    run: Path | None,
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    device: str,
    pictures: int | None,
) -> Any:
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint, load_config
    from sightline.data.boxes import read_boxes
    from sightline.experiments.experiment import Subject

    folder = find_checkpoint() if run is None else find_checkpoint(run)
    dataset, _ = dataset_for(run, data, images)
    if boxes is not None and not any(image.groundings for image in dataset):
        dataset = read_boxes(boxes, dataset)
    return Subject(
        "bundled" if run is None else run.resolve().name,
        load_config(folder)["model"]["name"],
        dataset.split(split)[:pictures],
        lambda: Captioner.load(folder, device=device),
    )


def _parse(settings: tuple[str, ...]) -> dict[str, Any]:
    """`option=value` pairs; values are written as in a recipe."""
    import yaml

    from sightline.errors import ConfigError

    values = {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        try:
            values[option] = yaml.safe_load(text)
        except yaml.YAMLError:
            equals = ""
        if not equals:
            raise ConfigError(f"--set {setting}: must be an option, an equals sign and a value")
    return values
