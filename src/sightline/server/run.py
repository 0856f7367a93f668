"""Run the server until it is told to stop."""

import socket
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import click
import uvicorn

from sightline.errors import ConfigError
from sightline.printing import printable
from sightline.server import desk
from sightline.server.app import create_app
from sightline.server.sections import Section
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf

SECTIONS: tuple[Section, ...] = (desk.SECTION,)
"""What is at the desk: the pages of a server that is started from the command line."""


def run(
    settings: Settings,
    shelf: Shelf,
    sections: Sequence[Section] = SECTIONS,
    links: Mapping[str, str] | None = None,
) -> None:
    """Listen, say where, and answer until interrupted.

    `links` are other paths to print, with what each is for.
    """
    listening = listen(settings)
    port = listening.getsockname()[1]
    address = settings.url.replace(f":{settings.port}/", f":{port}/")
    suffix = f"?token={quote(settings.token, safe='')}" if settings.token else ""
    click.echo(f"{address}{suffix}\nOpen this address in a browser. Ctrl-C ends the server.")
    for name, path in (links or {}).items():
        click.echo(f"{printable(name)}: {address.rstrip('/')}{path}")
    config = uvicorn.Config(
        create_app(settings, sections, shelf),
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # nobody is believed to be somebody else
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run([listening])


def listen(settings: Settings) -> socket.socket:
    """The socket of an address; an error says why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio turns Nagle's algorithm off only if the protocol is named; with it, the body of an
        # answer waits 40 ms for the client to acknowledge the headers.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except (OSError, UnicodeError) as error:  # (the latter: it can be no host's name)
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port} ({reason}): "
            "choose another --port or --host"
        ) from None
    return listening
