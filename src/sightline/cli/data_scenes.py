"""`sightline data scenes`."""

from pathlib import Path

import click

from sightline.data.scenes import DIFFICULTIES, make_scene_dataset, write_scenes
from sightline.printing import printable


@click.command("scenes")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--train", type=click.IntRange(0), default=400, show_default=True, help="Training scenes."
)
@click.option("--dev", type=click.IntRange(0), default=100, show_default=True, help="Dev scenes.")
@click.option("--test", type=click.IntRange(0), default=100, show_default=True, help="Test scenes.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The same seed gives the same scenes.",
)
@click.option(
    "--difficulty",
    type=click.Choice(list(DIFFICULTIES)),
    default="medium",
    show_default=True,
    help="How many shapes there are, and how hard they are to describe.",
)
@click.option(
    "--size",
    type=click.IntRange(32, 1024),
    default=128,
    show_default=True,
    help="Width and height of a picture in pixels.",
)
@click.option(
    "--bias",
    type=click.FloatRange(0, 1),
    help="Of the training scenes with a circle, the share that also has a star (half in dev and "
    "test). Stars that a model hallucinates can then be counted.",
)
def command(
    folder: Path,
    train: int,
    dev: int,
    test: int,
    seed: int,
    difficulty: str,
    size: int,
    bias: float | None,
) -> None:
    """Generate synthetic scenes in FOLDER: PNG pictures, captions and a box for each object word.

    Each scene has coloured shapes on a textured background and five captions. The right answers
    are known, so you can watch a model learn within a minute and count what it hallucinates.
    """
    dataset = make_scene_dataset(
        train, dev, test, seed=seed, difficulty=difficulty, size=size, bias=bias
    )
    path = write_scenes(dataset, folder)
    click.echo(f"{len(dataset):,} scenes written; captions and boxes in {printable(path)}")
