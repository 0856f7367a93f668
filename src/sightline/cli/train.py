"""`sightline train`."""

from pathlib import Path

import click

from sightline import extras
from sightline.encoders.workers import end_with_torchrun
from sightline.printing import printable
from sightline.recipe import dump_recipe, load_recipe
from sightline.recipes import find_recipe


@click.command("train")
@click.argument("recipe")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--run",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the run. Default: runs/ and the recipe's name. If it contains a run of the "
    "same recipe, training resumes.",
)
@click.option("--print-config", is_flag=True, help="Print the recipe with all defaults and exit.")
def command(recipe: str, overrides: tuple[str, ...], run: Path | None, print_config: bool) -> None:
    """Train a captioner from RECIPE: a shipped one by its name (`sightline recipes` lists them) or
    a YAML file. KEY=VALUE overrides a setting (epochs=5).

    You can kill it at any time: the same command resumes from the last checkpoint and ends with
    the same weights, bit for bit.
    """
    end_with_torchrun()  # before torch is imported, which takes seconds
    chosen = load_recipe(recipe, overrides)
    if print_config:
        click.echo(dump_recipe(chosen), nl=False)
        return
    extras.require("train", "training")
    from sightline.training.loop import train

    path = find_recipe(recipe)
    folder = run or Path("runs") / f"{path.parent.name}-{path.stem}"
    train(chosen, folder, show_progress=True)
    click.echo(f"Done. Caption a picture: sightline caption --model {printable(folder)} photo.jpg")
