"""`sightline tune`."""

from pathlib import Path

import click

from sightline import extras
from sightline.cli.options import folder_option


@click.command("tune")
@click.argument("recipe")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="KEY=RANGE",
    help="What to search: KEY=LOW..HIGH, KEY='LOW..HIGH log' or KEY=[A,B,C]. Repeat for several.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many runs to train, in all.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the search.")
@folder_option("Folder for the study, its runs, the figure and the best recipe.", required=True)
def command(
    recipe: str,
    overrides: tuple[str, ...],
    ranges: tuple[str, ...],
    trials: int,
    seed: int,
    output: Path,
) -> None:
    """Search the settings of RECIPE for the best dev score. KEY=VALUE fixes a setting.

    A run that is worse than the median of earlier ones at the same epoch is stopped. You can kill
    the search at any time: the same command goes on with it.
    """
    extras.require("train", "training")
    extras.require("tune", "sightline tune")
    from sightline.recipe import dump_recipe, load_recipe
    from sightline.training.tuning import Range, best_of, recipe_of, table, tune, write_search

    searched = [Range.parse(text) for text in ranges]
    attempts = tune(
        recipe,
        searched,
        output,
        overrides=overrides,
        trials=trials,
        seed=seed,
        show_progress=True,
    )
    metric = load_recipe(recipe, overrides).dev.metric
    best = recipe_of(recipe, overrides, best_of(attempts))
    write_search(output, attempts, searched, metric, dump_recipe(best))
    click.echo(table(attempts, metric), nl=False)
    click.echo(f"The best recipe: {output / 'best.yaml'}")
