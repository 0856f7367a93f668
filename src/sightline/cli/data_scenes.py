"""`sightline data scenes`."""

from pathlib import Path

import click

from sightline.data.scenes import DIFFICULTIES, make_scene_dataset, write_scenes


@click.command("scenes")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--train", type=click.IntRange(0), default=400, show_default=True)
@click.option("--dev", type=click.IntRange(0), default=100, show_default=True)
@click.option("--test", type=click.IntRange(0), default=100, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--difficulty", type=click.Choice(list(DIFFICULTIES)), default="medium", show_default=True
)
@click.option("--size", type=click.IntRange(32, 1024), default=128, show_default=True)
@click.option(
    "--bias",
    type=click.FloatRange(0, 1),
    help="Share of the training scenes with a circle in which a star accompanies it (half in dev "
    "and test), so that made-up stars can be counted.",
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
    """Draw synthetic scenes into FOLDER: PNG pictures, captions.jsonl, a box for every object word.

    Coloured shapes in relations on textured backgrounds, five paraphrases each: data with known
    answers, to see a model learn within a minute and to count what it makes up.
    """
    dataset = make_scene_dataset(
        train, dev, test, seed=seed, difficulty=difficulty, size=size, bias=bias
    )
    path = write_scenes(dataset, folder)
    click.echo(f"{len(dataset):,} scenes written; captions and boxes in {path}")
