"""A section of the server: its routes, and a page that all pages link to.

Another module adds one by giving it to `create_app`. Its scripts and styles are files of `web/`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from sightline.report.page import parts, style

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
SHARED = ("page.css", "page.js", "shell.css")
"""What every page loads first: the parts of the explanation page, and the frame of the server."""


@dataclass(frozen=True)
class Section:
    """Something to do at one's desk: a page, and the routes that it asks.

    The page is an empty `<main id="page">` that the scripts fill; they use the parts of the
    explanation page (`sightline.make`, `sightline.showReport` …). There is no script in the HTML:
    the content security policy would not run it.

    >>> Section("/review", "Review", scripts=("review.js",)).styles
    ()
    """

    path: str
    title: str  # in the links at the top of each page, and of the window
    scripts: tuple[str, ...] = ()  # files of `web/`, in order
    styles: tuple[str, ...] = ()
    router: APIRouter | None = None
    linked: bool = True  # from the top of the other pages; one that is not links to none
    public: tuple[str, ...] = ()  # beginnings of paths that hold a secret, and need no token
    # Runs while the server does, such as work in the background.
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None


def add_sections(app: FastAPI, sections: Sequence[Section]) -> None:
    """Serve the pages of all sections, what they load, and their routes."""
    assets = dict(_assets())

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in assets:  # the names of a table: no path of the disk can be asked for
            raise HTTPException(404, "there is no such file")
        kind, content = assets[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    for section in sections:
        if missing := {*section.scripts, *section.styles} - set(assets):
            raise ValueError(f"{section.title}: web/ has no {', '.join(sorted(missing))}")
        app.get(section.path, include_in_schema=False)(_shows(render_shell(section, sections)))
        if section.router is not None:
            app.include_router(section.router)


def _shows(page: str) -> Any:
    async def show() -> HTMLResponse:
        return HTMLResponse(page)

    return show


def render_shell(section: Section, sections: Sequence[Section]) -> str:
    """The page of a section before its scripts fill it.

    >>> '<title>Review · Sightline</title>' in render_shell(Section("/r", "Review"), [])
    True
    """
    links = "".join(
        f'<a href="{escape(one.path)}"{" aria-current=page" if one is section else ""}>'
        f"{escape(one.title)}</a>"
        for one in sections
        if one.linked and section.linked
    )
    styles = [name for name in SHARED if name.endswith(".css")] + list(section.styles)
    scripts = [name for name in SHARED if name.endswith(".js")] + list(section.scripts)
    content = {
        "title": escape(f"{section.title} · Sightline"),
        "links": links,
        "styles": "\n".join(f'<link rel="stylesheet" href="/assets/{name}">' for name in styles),
        "scripts": "\n".join(f'<script defer src="/assets/{name}"></script>' for name in scripts),
    }
    shell = (files("sightline.server") / "web" / "shell.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda name: content[name[1]], shell)


def _assets() -> Iterator[tuple[str, tuple[str, str]]]:
    """Name -> type and content of all that pages load. They are read once, and few."""
    yield "page.js", (_TYPES[".js"], parts())
    yield "page.css", (_TYPES[".css"], style())
    for file in (files("sightline.server") / "web").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _TYPES:
            yield file.name, (_TYPES[suffix], file.read_text("utf-8"))
