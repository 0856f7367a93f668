"""Whom the server answers: the right Host, the right Origin and, if it is asked for, a token.

A page on the web can make a browser send requests to this machine. It cannot choose the Host that
the browser names unless it lets its own name point here (DNS rebinding), and it cannot hide its
Origin. So a request for another name, or from another origin, is refused before anything is read.
"""

import hmac
from collections.abc import Iterable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.server.problems import problem
from sightline.server.settings import Settings, is_address, is_loopback

COOKIE = "sightline_token"
_HEADERS = {
    # Scripts, styles and requests: this server's alone. Pictures: also those a page holds itself.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_OPEN = ("/healthz",)  # tells nothing, and is asked by those who start servers


class Guard:
    """The outermost layer: it refuses requests, and adds what browsers should know to answers.

    `public` are beginnings of paths that need no token, because they hold a secret themselves.
    """

    def __init__(self, app: ASGIApp, settings: Settings, public: Iterable[str] = ()) -> None:
        self.app, self.settings = app, settings
        self.public = tuple(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # nothing here speaks WebSocket
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                answer.setdefault("Cache-Control", "no-store")
            await send(message)

        app: ASGIApp = self.app
        if refused := self._refusal(scope, headers):
            status, why = refused
            app = problem(status, why, {"WWW-Authenticate": "Bearer"} if status == 401 else None)
        elif entering := self._enters(scope):
            app = entering
        await app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._knows(host):
            return 421, "the server is not known by this name: use its address, or --name"
        origin = headers.get("origin")
        if origin is not None and not _is_of(origin, host):
            return 403, "a page of another site may not ask this server"
        fetched_by_another = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if fetched_by_another and headers.get("sec-fetch-mode") != "navigate":
            return 403, "a page of another site may not ask this server"
        if not self._may(scope, headers):
            return 401, "a token is needed: open the address that the server printed when it began"
        return None

    def _knows(self, host: str) -> bool:
        """Whether a Host is the server's; the port does not matter, it may be forwarded."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            urlsplit(f"//{host}").port  # noqa: B018 - a wrong one raises
        except ValueError:
            return False
        if name in self.settings.names or is_loopback(name):
            return True
        # An address is never rebound. A server that all may reach has addresses it cannot know.
        return is_address(name) and not self.settings.is_local

    def _may(self, scope: Scope, headers: Headers) -> bool:
        path = scope["path"]
        if self.settings.token is None or path in _OPEN or path.startswith(self.public):
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except Exception:  # malformed: as if there were none
            cookies.clear()
        offered = [given] if kind.lower() == "bearer" else []
        offered += [cookies[COOKIE].value] if COOKIE in cookies else []
        offered += _in_query(scope)
        return any(map(self._is_token, offered))

    def _is_token(self, given: str) -> bool:
        token = self.settings.token
        return token is not None and hmac.compare_digest(given.encode(), token.encode())

    def _enters(self, scope: Scope) -> ASGIApp | None:
        """A browser that comes with the token in the address gets a cookie in its place."""
        # Paths that need no token come here with any: only who knows it may get it.
        if scope["method"] != "GET" or not any(map(self._is_token, _in_query(scope))):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        query.pop("token", None)
        rest = f"?{urlencode(query, doseq=True)}" if query else ""
        # One slash: "//host" would lead to another server.
        response = RedirectResponse(f"/{scope['path'].lstrip('/')}{rest}", 303)
        response.set_cookie(COOKIE, self.settings.token or "", httponly=True, samesite="strict")
        return response


def _in_query(scope: Scope) -> list[str]:
    return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])


def _is_of(origin: str, host: str) -> bool:
    """Whether an Origin is that of the Host. A default port may be left out by either.

    >>> _is_of("http://localhost:8765", "localhost:8765"), _is_of("null", "localhost:8765")
    (True, False)
    """
    try:
        one, other = urlsplit(origin), urlsplit(f"{urlsplit(origin).scheme}://{host}")
        default = {"http": 80, "https": 443}.get(one.scheme)
        return default is not None and (one.hostname, one.port or default) == (
            other.hostname,
            other.port or default,
        )
    except ValueError:
        return False
