"""`sightline recipes`."""

import click

from sightline.recipes import find_recipe, shipped_recipes, summary


@click.command("recipes")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the recipes that come with Sightline, or print the one called NAME.

    To change more than a few settings, print a recipe into a file, edit it and train from that:
    sightline recipes scenes/soft_attention > mine.yaml
    """
    if name is not None:
        click.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)
        return
    shipped = shipped_recipes()
    width = max(map(len, shipped))
    for recipe, path in shipped.items():
        click.echo(f"{recipe:<{width}}  {summary(path)}")
