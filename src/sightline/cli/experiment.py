"""`sightline experiment`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sightline.cli.options import (
    boxes_option,
    data_option,
    dataset_for,
    device_option,
    folder_option,
    images_option,
    pictures_option,
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
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for encoded pictures, of an experiment that trains. Default: the recipe's.",
)
@pictures_option("Use only the first pictures of the split, this many. Default: all.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the experiment, such as methods=[lrp,attention]. Repeat for several.",
)
@folder_option("Folder for table.md, figure.png, figure.svg and data.json.")
def command(
    name: str | None,
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    device: str,
    cache: Path | None,
    pictures: int | None,
    settings: tuple[str, ...],
    output: Path | None,
) -> None:
    """Run the experiment NAME on training RUNS, or list the experiments.

    Without RUNS, the bundled captioner is used. RUN:1 is what the first phase of a run ended with.
    For paper0-table4, give studies that sightline compare-blind made. Some experiments train their
    own captioners, with recipes that --set changes, and take no RUNS. An experiment that was
    interrupted goes on where it was if you give the same command again.
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
    if experiment.arms is not None:
        if runs:
            raise ConfigError(f"{name} trains its own captioners; give it no runs")
        places = {"data.path": data, "data.images": images, "encoder.cache": cache}
        locations = [f"{key}={value}" for key, value in places.items() if value is not None]
        findings = run_experiment(
            experiment, (), options, output, locations=locations, show_progress=True
        )
    elif experiment.open is not None:
        if not runs:
            raise ConfigError(f"{name}: give the folder that it reads")
        subjects = [experiment.open(path) for path in runs]
        findings = run_experiment(experiment, subjects, options, output, show_progress=True)
    else:
        subjects = [
            _subject(run, name, split, data, images, boxes, device, pictures)
            for run, name in zip(runs or (None,), _names(runs), strict=True)
        ]
        counts = {subject.name: len(subject.images) for subject in subjects}
        setting = {"data": _data_of(runs, data), "split": split, "pictures": counts}
        findings = run_experiment(
            experiment, subjects, options, output, setting=setting, show_progress=True
        )
    click.echo(findings.table, nl=False)


def _subject(
    run: Path | None,
    name: str,
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    device: str,
    pictures: int | None,
) -> Any:
    from sightline.adapters.source import find_source
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint, load_config
    from sightline.data.boxes import read_boxes
    from sightline.experiments.experiment import Subject
    from sightline.experiments.masks import trained_mask
    from sightline.experiments.training_tasks import budget_of, position_of
    from sightline.recipe import load_recipe_of

    run, phase = (None, None) if run is None else _without_phase(run)
    folder = find_checkpoint() if run is None else find_checkpoint(run, phase)
    dataset, _ = dataset_for(run, data, images)
    if boxes is not None and not any(image.groundings for image in dataset):
        dataset = read_boxes(boxes, dataset)
    budget = ""
    if run is not None and (run / "recipe.yaml").is_file():
        recipe = load_recipe_of(run)
        last = len(recipe.then) if phase is None else phase - 1
        if (folder / "training.json").is_file():  # the best may be of before the last phase
            last = position_of(folder).phase
        budget = budget_of(replace(recipe, then=recipe.then[:last]))
    source = find_source(folder)
    return Subject(
        name if source is None else source.label,
        load_config(folder)["model"]["name"] if source is None else str(source),
        dataset.split(split)[:pictures],
        lambda: Captioner.load(folder, device=device),
        budget,
        None if run is None else trained_mask(run, folder),
    )


def _data_of(runs: tuple[Path, ...], data: Path | None) -> str:
    """What a table rests on, in words: the dataset's name, never where it is."""
    from sightline.experiments.training_tasks import data_name
    from sightline.recipe import load_recipe_of

    if data is not None:
        return data.resolve().stem
    recipes = (load_recipe_of(_without_phase(run)[0]) for run in runs)
    return ", ".join(dict.fromkeys(map(data_name, recipes)))


def _without_phase(run: Path) -> tuple[Path, int | None]:
    """A run, and the phase that `RUN:1` asks for."""
    if not run.exists() and (match := _OF_PHASE.fullmatch(str(run))):
        return Path(match["run"]), int(match["phase"])
    return run, None


_OF_PHASE = re.compile(r"(?P<run>.+):(?P<phase>[0-9]{1,3})")


def _names(runs: Sequence[Path]) -> list[str]:
    """What runs are called: by their folders, and as many of those above as tell them apart.

    >>> _names([Path("/a/runs/x"), Path("/b/runs/x"), Path("/b/y")])
    ['a/runs/x', 'b/runs/x', 'y']
    """
    if not runs:
        return ["bundled"]
    pairs = [_without_phase(run) for run in runs]
    phases = ["" if phase is None else f":{phase}" for _, phase in pairs]
    parts = [run.resolve().parts[1:] for run, _ in pairs]

    def name(number: int, length: int) -> str:
        return "/".join(parts[number][-length:]) + phases[number]

    names = []
    for number, own in enumerate(parts):
        others = [other for other in range(len(parts)) if other != number]
        lengths = range(1, len(own) + 1)
        apart = (n for n in lengths if all(name(number, n) != name(other, n) for other in others))
        names.append(name(number, next(apart, 1)))
    return names


def _parse(settings: tuple[str, ...]) -> dict[str, Any]:
    """`option=value` pairs; values are written as in a recipe."""
    from sightline.errors import ConfigError
    from sightline.parsing import parse_yaml

    values = {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: must be an option, an equals sign and a value")
        values[option] = parse_yaml(text, f"--set {setting}")
    return values
