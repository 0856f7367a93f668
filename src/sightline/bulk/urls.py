"""Pictures from the web: bounded in size, time and redirects, and never from a private address."""

import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from typing import Any
from urllib.parse import urljoin, urlsplit

from sightline.errors import PictureError
from sightline.version import __version__

SECONDS = 30.0  # for one picture, redirects included
REDIRECTS = 3
_CHUNK = 1 << 16
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # IPv4 addresses, of machines that have only IPv6
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all of IPv6 that the open internet uses


def is_url(name: str) -> bool:
    """
    >>> is_url("https://example.org/dog.jpg"), is_url("dog.jpg")
    (True, False)
    """
    return name.startswith(("http://", "https://"))


def download(url: str, most_bytes: int, seconds: float = SECONDS) -> bytes:
    """The content behind an address; raises a `PictureError` that names it."""
    deadline, address = time.monotonic() + seconds, url
    try:
        for _ in range(REDIRECTS + 1):
            content = _get(address, most_bytes, deadline)
            if isinstance(content, bytes):
                return content
            address = content
        raise PictureError(f"{url} redirects more than {REDIRECTS} times: give the final address")
    except TimeoutError:
        raise PictureError(f"{url} took longer than {seconds:.0f} s: try again") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(f"{url} cannot be fetched ({reason}): check the address") from None


def _get(url: str, most_bytes: int, deadline: float) -> bytes | str:
    """The content, or the address that it redirects to."""
    connection = _connect(url, deadline)
    try:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"User-Agent": f"sightline/{__version__}"})
        # (as `getresponse` does, which would wait for each line of the headers anew)
        response = http.client.HTTPResponse(
            _Received(connection.sock, deadline),  # type: ignore[arg-type]
            method="GET",
        )
        response.begin()
        if response.status in (301, 302, 303, 307, 308):
            return urljoin(url, response.headers.get("Location", ""))
        if response.status != 200:
            raise PictureError(f"{url} answers {response.status} {response.reason}: check it")
        content = bytearray()
        while chunk := response.read1(_CHUNK):
            content += chunk
            if len(content) > most_bytes:
                raise PictureError(
                    f"{url} has more than {most_bytes // 1_000_000} megabytes: fetch it yourself"
                )
        return bytes(content)
    finally:
        connection.close()


def _connect(url: str, deadline: float) -> http.client.HTTPConnection:
    """A connection to an address that was checked: a name is not looked up a second time."""
    parts = urlsplit(url)
    if not is_url(url) or not parts.hostname:
        raise PictureError(f"{url} is not a web address: it must start with http:// or https://")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    addresses = _look_up(parts.hostname, port, deadline)
    for address in addresses:
        if not is_public(address):
            raise PictureError(f"{url} leads to the private address {address}, which is refused")
    connection = http.client.HTTPConnection(parts.hostname, port)
    connection.sock = _connect_to_any(addresses, port, deadline)
    if secure:
        connection.sock.settimeout(_remaining(deadline))
        connection.sock = ssl.create_default_context().wrap_socket(
            connection.sock, server_hostname=parts.hostname
        )
    return connection


def _look_up(host: str, port: int, deadline: float) -> list[str]:
    """All addresses of a name, each once. The system's own patience may be longer than ours."""
    answer: Future[list[Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()  # (a pool would be waited for at the end)
    found = answer.result(_remaining(deadline))
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _connect_to_any(addresses: list[str], port: int, deadline: float) -> socket.socket:
    """A connection to the first address that answers; each has an equal share of the time left."""
    for number, address in enumerate(addresses):
        left = _remaining(deadline)
        try:
            return socket.create_connection((address, port), left / (len(addresses) - number))
        except OSError:
            if address == addresses[-1]:
                raise
    raise OSError("the name has no address")


def is_public(address: str) -> bool:
    """Whether an address belongs to the open internet.

    >>> is_public("93.184.216.34"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1")
    (True, False, False)
    """
    parsed = ipaddress.ip_address(address.split("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        # The IPv4 address that packets end at, where there is one in it.
        inner = ipaddress.IPv4Address(int(parsed) % 2**32) if parsed in _NAT64 else None
        inner = inner or parsed.ipv4_mapped or parsed.sixtofour
        if inner is None and parsed not in _UNICAST:
            return False
        parsed = inner or parsed
    return parsed.is_global and not parsed.is_multicast


class _Received(io.RawIOBase):
    """What a socket receives until a deadline, however slowly it comes."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection, self.deadline = connection, deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(_remaining(self.deadline))
        return self.connection.recv_into(buffer)


def _remaining(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
