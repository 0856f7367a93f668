"""What a server is started with: where it listens, whom it answers, how much it takes."""

import ipaddress
import secrets
from dataclasses import dataclass
from pathlib import Path

from sightline.errors import ConfigError
from sightline.files import MEGABYTE

_TOKEN_LENGTH = 16  # characters: fewer can be guessed


@dataclass(frozen=True)
class Settings:
    """The defaults are safe: only this machine is answered, and nothing grows without bound.

    >>> Settings().url
    'http://127.0.0.1:8765/'
    >>> Settings(host="0.0.0.0")
    Traceback (most recent call last):
    sightline.errors.ConfigError: 0.0.0.0 can be reached from other machines: a token is needed
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None  # what clients must know; None: whoever is on this machine may ask
    names: tuple[str, ...] = ()  # by which clients may call the server, besides its address
    folder: Path | None = None  # of pictures that the pages may show
    upload_bytes: int = 32 * MEGABYTE  # of one request
    upload_seconds: float = 60.0  # until a request must have arrived
    queue: int = 128  # requests that are worked on or wait; more are told to come again
    window: float = 0.004  # seconds that a request waits for others to be computed with
    batch: int = 16  # pictures that are computed together
    kept_pictures: int = 16  # that pages may ask about again without sending them again
    loaded: int = 1  # captioners in memory

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < _TOKEN_LENGTH:
            raise ConfigError(f"the token is too short: give at least {_TOKEN_LENGTH} characters")
        if self.token is None and not self.is_local:
            raise ConfigError(f"{self.host} can be reached from other machines: a token is needed")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server.

        >>> Settings(host="localhost").is_local, Settings(host="::1").is_local
        (True, True)
        """
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """The address of the first page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def is_loopback(host: str) -> bool:
    """Whether a name or an address is that of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("192.168.1.7"), is_loopback("localhost.example.org")
    (True, False, False)
    """
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Whether it is an address, and no name that somebody could let point elsewhere.

    >>> is_address("::1"), is_address("127.0.0.1.example.org")
    (True, False)
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def new_token() -> str:
    """A token that nobody can guess.

    >>> len(new_token()) >= 32
    True
    """
    return secrets.token_urlsafe(24)
