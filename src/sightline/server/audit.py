"""The section *Audit*: the report of `sightline audit`, with its filters, and its explanations."""

import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from sightline.errors import DataError
from sightline.files import MEGABYTE
from sightline.parsing import parse_json, read_text
from sightline.server.problems import describe
from sightline.server.sections import Section

REPORT = "report.html"
_MOST = 512 * MEGABYTE
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def audit_sections(folder: Path) -> tuple[Section, Section]:
    """The page over an audit, and the explanation pages that it links to.

    Only the data of the stored pages is taken. What shows it are the server's own scripts.
    """
    read_page(folder / REPORT)  # an error now, and not in the browser
    router = APIRouter(prefix="/audit/data", tags=["audit"], responses=describe(404, 422))

    @router.get("")
    def report() -> dict[str, Any]:
        data = read_page(folder / REPORT)
        for picture in data.get("pictures", []):
            number = re.fullmatch(r"pages/([0-9]{1,9})\.html", picture.get("page") or "")
            picture["page"] = f"/audit/pages/{number[1]}" if number else None
        return data

    @router.get("/pages/{number}")
    def explanation(number: str) -> dict[str, Any]:
        path = folder / "pages" / f"{number}.html"
        if not re.fullmatch(r"[0-9]{1,9}", number) or not path.is_file():
            raise HTTPException(404, "there is no such page")
        return read_page(path) | {"index": "/audit"}

    return (
        Section("/audit", "Audit", scripts=("exchange.js", "audit_page.js"), router=router),
        Section(
            "/audit/pages/{number}",
            "Explanation",
            scripts=("exchange.js", "audit_page.js"),
            linked=False,
        ),
    )


def read_page(path: Path) -> dict[str, Any]:
    """The data of a page that Sightline wrote."""
    found = _DATA.search(read_text(path, _MOST, DataError))
    data = parse_json(found[1], str(path), DataError) if found else None
    if not isinstance(data, dict):
        raise DataError(f"{path}: is not a page of sightline audit")
    return data
