"""`sightline serve`."""

import contextlib
import os
from pathlib import Path

import click

from sightline.cli.options import device_option
from sightline.errors import ConfigError
from sightline.extras import require
from sightline.files import read_bytes

TOKEN = "SIGHTLINE_TOKEN"  # an environment variable


@click.command("serve")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--model",
    "models",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Checkpoint, training run, hf:FOLDER or http://… Repeat to choose between several on the "
    "page. Default: the bundled captioner.",
)
@device_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--name",
    "names",
    multiple=True,
    help="A host name by which clients may call the server. Repeat for several.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help=f"File with the token that clients must know. Default: ${TOKEN}; if the server can be "
    "reached from other machines, a new one.",
)
@click.option(
    "--review",
    is_flag=True,
    help="Caption all pictures of FOLDER in the background, and open a page to accept, edit or "
    "reject the captions. What is decided is kept in FOLDER.review, beside it.",
)
@click.option(
    "--blind",
    type=click.Path(path_type=Path, file_okay=False),
    help="A study of sightline compare-blind: prints a link for each rater.",
)
@click.option(
    "--audit",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of a sightline audit, to look through.",
)
def command(
    folder: Path | None,
    models: tuple[Path, ...],
    device: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    token_file: Path | None,
    review: bool,
    blind: Path | None,
    audit: Path | None,
) -> None:
    """Open a page for your pictures on this machine, and an HTTP API.

    With FOLDER, the page shows the pictures in it. Only this machine is answered, unless --host
    names another address; then clients need a token.
    """
    require("serve", "sightline serve")
    from sightline.server.settings import Settings, is_loopback, new_token

    token = os.environ.get(TOKEN) or None
    if token_file is not None:
        token = read_bytes(token_file, 4096).decode("utf-8", "replace").strip()
    if token is None and not is_loopback(host):
        token = new_token()
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder")
    settings = Settings(host, port, token, tuple(name.lower() for name in names), folder)
    if review and folder is None:
        raise ConfigError("--review needs the FOLDER of the pictures")
    from sightline.server.opened import open_sections
    from sightline.server.run import SECTIONS, run
    from sightline.server.shelf import Shelf

    shelf = Shelf(models, device, settings.loaded)
    opened = open_sections(folder if review else None, blind, audit)
    with opened as (sections, links), contextlib.suppress(KeyboardInterrupt):  # how one ends it
        run(settings, shelf, [*SECTIONS, *sections], links)
