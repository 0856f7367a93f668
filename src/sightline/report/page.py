"""Self-contained pages: one for a caption, and an index over several.

A page is its data as JSON and a renderer, `web/`, which a server can use with the same data. It
makes no network requests, works from a file, and its policy runs no script but its own.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from sightline.printing import encodable, printable
from sightline.report import colours
from sightline.report.page_data import index_data, page_data
from sightline.report.report import Report
from sightline.text.neighbours import unknown_neighbours

PARTS = ("dom", "heat", "caption", "whynot", "sections", "report", "index", "audit")
STYLES = ("theme", "report", "index", "audit")


def render_page(report: Report, *, index: str | None = None) -> str:
    """The page of a report, as HTML; `index` is the address of the page over all pictures.

    >>> report = captioner.report("photo.jpg")  # doctest: +SKIP
    >>> Path("why.html").write_text(render_page(report), "utf-8")  # doctest: +SKIP
    """
    # A server looks words up when it is asked; a page must have looked already.
    neighbours = unknown_neighbours(tuple(report.likeliest)) if report.likeliest else {}
    data = page_data(report) | {"index": index, "neighbours": neighbours}
    said = f"<h1>{escape(report.caption.text)}</h1><p>{escape(data['caption']['verdict'])}</p>"
    return _render(f"{report.caption} · {report.name}", said, data)


def render_index(entries: Sequence[dict[str, Any]]) -> str:
    """The page over several pictures, of an `index_entry` for each.

    >>> "Captions of 0 pictures" in render_index([])
    True
    """
    links = "".join(
        f'<li><a href="{escape(entry["address"])}">{escape(entry["name"])}</a></li>'
        for entry in entries
    )
    return _render(f"Captions of {len(entries)} pictures", f"<ul>{links}</ul>", index_data(entries))


def render_audit(document: dict[str, Any]) -> str:
    """The report of an audit, of its document with a thumbnail for each picture.

    >>> "<title>Audit of vendor" in render_audit({"title": "Audit of vendor", "headline": ""})
    True
    """
    title, headline = escape(document["title"]), escape(document["headline"])
    return _render(document["title"], f"<h1>{title}</h1><p>{headline}</p>", document)


def parts() -> str:
    """The renderer. `sightline.showReport(element, data)` shows what `page_data` gives.

    >>> "sightline.showReport" in parts()
    True
    """
    return "\n".join(_resource(f"{name}.js") for name in PARTS)


def script() -> str:
    """The renderer, and what lets it show the data of the page it is in."""
    return parts() + "\n" + _resource("start.js")


def style() -> str:
    """The style of all pages; colours are variables.

    >>> "--heat-for: rgb(255 128 0)" in style()
    True
    """
    shades = (("for", colours.FOR), ("against", colours.AGAINST))
    variables = "".join(f" --heat-{name}: {colours.css(shade)};" for name, shade in shades)
    return f":root {{{variables} }}\n" + "\n".join(_resource(f"{name}.css") for name in STYLES)


def _render(title: str, fallback: str, data: dict[str, Any]) -> str:
    parts = {
        "title": escape(printable(title)),
        "fallback": fallback,
        "style": style(),
        "script": script(),
        "style_hash": _hash(style()),
        "script_hash": _hash(script()),
        # "</script>" or "<!--" in a caption must not end or change the element it stands in.
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    return encodable(re.sub(r"\{\{(\w+)\}\}", lambda name: parts[name[1]], _resource("page.html")))


def _hash(text: str) -> str:
    """As a content security policy names what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _resource(name: str) -> str:
    return (files("sightline.report") / "web" / name).read_text(encoding="utf-8")
