"""Pictures from the web, within bounds."""

import http.server
import socket
import threading
import time

import pytest

import sightline
from sightline.bulk import urls
from sightline.errors import PictureError


class Pages(http.server.BaseHTTPRequestHandler):
    picture = b""

    def do_GET(self):
        if self.path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
        elif self.path == "/moved":
            self.send_response(301)
            self.send_header("Location", "/cat.jpg")
            self.end_headers()
        elif self.path == "/missing":
            self.send_error(404)
        elif self.path == "/slow-headers":
            self.send_response(200)
            for _ in range(101):  # more than http.client would take, were it let
                self.send_header("X", "x")
                self.flush_headers()
                time.sleep(0.02)
        elif self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(20):
                self.wfile.write(b"x")
                time.sleep(0.1)
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.picture)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def site(examples):
    Pages.picture = (examples / "cat.jpg").read_bytes()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_private_addresses_are_refused(site):
    with pytest.raises(PictureError, match=r"private address 127\.0\.0\.1"):
        urls.download(f"{site}/cat.jpg", 1000)
    for address in ("10.1.2.3", "192.168.0.1", "169.254.169.254", "::1", "fd00::1", "0.0.0.0"):
        assert not urls.is_public(address)
    # IPv4 inside IPv6: by NAT64, 6to4, and as it was written long ago; and site-local addresses.
    for address in ("64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::127.0.0.1", "fec0::1"):
        assert not urls.is_public(address)
    for address in ("64:ff9b::808:808", "2002:808:808::", "2606:4700::1111"):
        assert urls.is_public(address)


def test_downloads_are_bounded(site, monkeypatch):
    monkeypatch.setattr(urls, "is_public", lambda address: True)
    assert urls.download(f"{site}/moved", 10**6) == Pages.picture
    for path, says in (
        ("/loop", "redirects more than 3 times"),
        ("/missing", "answers 404"),
        ("/slow", "took longer than 1 s"),
        ("/slow-headers", "took longer than 1 s"),
    ):
        with pytest.raises(PictureError, match=says):
            urls.download(site + path, 10**6, seconds=0.6)
    with pytest.raises(PictureError, match="has more than 0 megabytes"):
        urls.download(f"{site}/cat.jpg", 1000)
    with pytest.raises(PictureError, match="is not a web address"):
        urls.download("file:///etc/passwd", 1000)


def answers(*addresses, look_up=socket.getaddrinfo):
    """A look-up that gives a name these addresses."""

    def getaddrinfo(host, *given, **named):
        if not host.endswith(".example"):
            return look_up(host, *given, **named)
        return [(None, None, None, "", (address, 0)) for address in addresses]

    return getaddrinfo


def test_a_name_is_looked_up_within_the_deadline(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: over.wait(20))
    began = time.monotonic()
    with pytest.raises(PictureError, match="took longer than"):
        urls.download("http://slow.example/cat.jpg", 1000, seconds=0.3)
    assert time.monotonic() - began < 10
    over.set()


def test_a_name_that_is_not_known_is_one_line(monkeypatch):
    def unknown(*given, **named):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(PictureError, match=r"cannot be fetched \(.*Name or service not known"):
        urls.download("http://unknown.example/cat.jpg", 1000)
    monkeypatch.setattr(socket, "getaddrinfo", answers())
    with pytest.raises(PictureError, match="the name has no address"):
        urls.download("http://unknown.example/cat.jpg", 1000)


def test_every_address_of_a_name_is_tried(site, monkeypatch):
    monkeypatch.setattr(urls, "is_public", lambda address: True)
    port, connect, tried = int(site.rpartition(":")[2]), socket.create_connection, []

    def create_connection(address, timeout):
        tried.append(address[0])
        if address[0] == "127.0.0.1":
            return connect(address, timeout)
        raise TimeoutError if address[0] == "127.0.0.9" else ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", create_connection)
    monkeypatch.setattr(socket, "getaddrinfo", answers("127.0.0.9", "127.0.0.8", "127.0.0.1"))
    assert urls.download(f"http://site.example:{port}/cat.jpg", 10**6) == Pages.picture
    assert tried == ["127.0.0.9", "127.0.0.8", "127.0.0.1"]
    monkeypatch.setattr(socket, "getaddrinfo", answers("127.0.0.9", "127.0.0.8"))
    with pytest.raises(PictureError, match="cannot be fetched"):
        urls.download(f"http://site.example:{port}/cat.jpg", 10**6)


def test_one_private_address_of_a_name_is_enough_to_refuse_it(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34", "10.0.0.1"))
    with pytest.raises(PictureError, match=r"private address 10\.0\.0\.1"):
        urls.download("http://two.example/cat.jpg", 1000)


def test_a_redirect_to_a_private_address_is_refused(site, monkeypatch):
    answers = iter([True, False])
    monkeypatch.setattr(urls, "is_public", lambda address: next(answers))
    with pytest.raises(PictureError, match="private address"):
        urls.download(f"{site}/moved", 10**6)


def test_an_address_is_captioned_like_its_file(captioner, examples, site, monkeypatch, tmp_path):
    monkeypatch.setattr(urls, "is_public", lambda address: True)
    output = tmp_path / "captions.csv"
    sources = [f"{site}/cat.jpg", f"{site}/missing"]
    summary = sightline.caption_all(sources, output, captioner=captioner, allow_urls=True)
    assert (summary.captioned, summary.failed) == (1, 1)
    assert captioner.caption(examples / "cat.jpg").text in output.read_text()
