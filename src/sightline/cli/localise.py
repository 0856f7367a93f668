"""`sightline localise`, which says where it went."""

from typing import Any

import click

from sightline.errors import ConfigError


@click.command("localise", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--boxes")
@click.option("-o", "--output")
def command(**_: Any) -> None:
    """Replaced by `sightline experiment`."""
    raise ConfigError(
        "localise is part of 'sightline experiment' now: paper4-figure3 makes its table and "
        "figure, explanations compares methods by more measures"
    )
