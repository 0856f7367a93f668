"""The page for one's own pictures: the explanation page, alive.

A picture is sent once and kept for a while, so that what is asked about it next is quick. Answers
grow while they are computed, as lines of JSON: the caption, its verdicts, one method after another.
"""

import io
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from sightline.bulk.items import Item
from sightline.bulk.sources import Source
from sightline.captions import Caption
from sightline.errors import SightlineError
from sightline.explain.methods import find_method, list_methods
from sightline.pictures import open_picture
from sightline.report.heatmaps import fit
from sightline.report.page_data import grown_data, method_data, page_data, verdict_data
from sightline.report.report import DEFAULT_METHODS, Report
from sightline.server.api import engine_of
from sightline.server.engine import Engine
from sightline.server.presence import ClientGoneError, unless_gone
from sightline.server.sections import Section

router = APIRouter(prefix="/desk", include_in_schema=False)
_BEAM = 5  # captions to choose from
_THUMBNAIL = 320  # pixels of the longer side
_LISTED = 2000  # pictures of a folder that the page shows


@dataclass
class Kept:
    """A picture that the page may ask about again."""

    name: str
    content: bytes
    beams: dict[str, list[Caption]] = field(default_factory=dict)  # of each captioner


class Desk:
    """The pictures that pages work on: those sent last, and those of the folder."""

    def __init__(self, folder: Path | None, most: int) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._most = most
        self.folder = list(_pictures_in(folder)) if folder is not None else []

    def keep(self, name: str, content: bytes) -> str:
        """Keep a picture; the key by which only its sender knows it."""
        key = secrets.token_urlsafe(12)
        self._kept[key] = Kept(name, content)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return key

    def find(self, key: str) -> Kept:
        if key not in self._kept:
            raise HTTPException(410, "the picture is no longer kept: send it again")
        self._kept.move_to_end(key)
        return self._kept[key]

    def in_folder(self, number: int) -> Item:
        """A picture of the folder, by its number: no path can be asked for."""
        if not 0 <= number < len(self.folder):
            raise HTTPException(404, "there is no such picture in the folder")
        return self.folder[number]


def _pictures_in(folder: Path) -> Iterator[Item]:
    root = folder.resolve()
    for item in Source([folder]):
        # A link may lead out of the folder; what it leads to was not offered.
        if item.path is not None and item.path.resolve().is_relative_to(root):
            yield item


@router.get("/about")
async def about(request: Request) -> dict[str, Any]:
    """What can be chosen on the page."""
    desk = desk_of(request)
    return {
        "models": list(engine_of(request).shelf.names),
        "folder": [item.inside for item in desk.folder[:_LISTED]],
        "more": max(len(desk.folder) - _LISTED, 0),
    }


@router.get("/thumbnails/{number}")
async def thumbnail(request: Request, number: int) -> Response:
    """A small picture of the folder."""
    item = desk_of(request).in_folder(number)
    content = await engine_of(request).decode(_thumbnail, item)
    return Response(content, media_type="image/jpeg", headers={"Cache-Control": "max-age=600"})


@router.post("/explain")
async def explain(
    request: Request,
    image: Annotated[UploadFile | None, File()] = None,
    kept: Annotated[str | None, Form(max_length=100)] = None,
    number: Annotated[int | None, Form()] = None,
    model: Annotated[str | None, Form(max_length=200)] = None,
    caption: Annotated[str | None, Form(max_length=600)] = None,
    why_not: Annotated[list[str], Form(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    method: Annotated[list[str], Form(max_length=20)] = [],  # noqa: B006
) -> StreamingResponse:
    """Explain a picture: sent now, kept from before, or of the folder."""
    engine, desk = engine_of(request), desk_of(request)
    model = engine.shelf.find(model)
    methods = tuple(dict.fromkeys(method)) or DEFAULT_METHODS
    for one in methods:
        find_method(one)
    if image is not None:
        kept = desk.keep((image.filename or "picture")[:200], await image.read())
    elif number is not None:
        item = desk.in_folder(number)
        kept = desk.keep(item.inside, await engine.decode(item.read))
    elif kept is None:
        raise HTTPException(422, "send a picture, or say which of those sent before is meant")
    asked = Asked(kept, desk.find(kept), model, caption, tuple(why_not), methods)
    lines = _lines(request, asked.steps(engine))
    return StreamingResponse(lines, media_type="application/x-ndjson")


@dataclass(frozen=True)
class Asked:
    """What a page asks about a picture."""

    key: str
    picture: Kept
    model: str
    caption: str | None
    why_not: tuple[str, ...]
    methods: tuple[str, ...]

    async def steps(self, engine: Engine) -> AsyncIterator[dict[str, Any]]:
        """The answer, part by part, each with what is done next and how far it is."""
        count = 2 + len(self.methods)
        yield {"kept": self.key, **_progress(0, count, "Looking at the picture")}
        captioner = await engine.captioner(self.model)
        if self.model not in self.picture.beams:
            found = await engine.alone(
                lambda: captioner.captions([self.picture.content], n_best=_BEAM)[0]
            )
            self.picture.beams[self.model] = found
        beam = self.picture.beams[self.model]
        texts = [one.text for one in beam]
        # A caption of the beam is the captioner's own, whoever chose it.
        own = beam[texts.index(self.caption)] if self.caption in texts else None
        steps = captioner.report_steps(
            self.picture.content,
            name=self.picture.name,
            caption=own or self.caption or beam[0],
            methods=self.methods,
            why_not=[(word, None) for word in self.why_not],
        )
        report: Report = await engine.alone(lambda: next(steps))
        data = await engine.decode(page_data, report)
        shown = {method["name"] for method in data["methods"]}
        data["methods"] += [method_data(name) for name in list_methods() if name not in shown]
        data["growing"] = True
        if captioner.can_check:
            data["caption"]["verdict"] = "Its words are being checked against the picture."
        yield {"report": data, "beam": texts, **_progress(1, count, "Checking the words")}
        report = await engine.alone(lambda: next(steps))
        verdicts = await engine.decode(verdict_data, report)
        yield {"checked": verdicts, **_progress(2, count, _explaining(report))}
        done = 2
        while report.pending:
            method = report.pending[0]
            report = await engine.alone(lambda: next(steps))
            done += 1
            yield {
                "grown": await engine.decode(grown_data, report, method),
                **_progress(done, count, _explaining(report)),
            }


async def _lines(request: Request, steps: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """The steps as lines; an error is the last. When the client goes away, so does the work."""
    try:
        while True:
            try:
                step: dict[str, Any] = await unless_gone(request, _next(steps))
            except StopAsyncIteration:
                return
            yield json.dumps(step, separators=(",", ":")) + "\n"
    except ClientGoneError:
        return
    except SightlineError as error:
        yield json.dumps({"problem": str(error)}) + "\n"


async def _next(steps: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    return await anext(steps)


def _progress(done: int, count: int, doing: str | None) -> dict[str, Any]:
    return {"done": done, "of": count, "doing": doing}


def _explaining(report: Report) -> str | None:
    return f"Explaining by {find_method(report.pending[0]).label}" if report.pending else None


def _thumbnail(item: Item) -> bytes:
    picture = open_picture(item.read(), reduced_to=_THUMBNAIL)
    buffer = io.BytesIO()
    picture.resize(fit(*picture.size, _THUMBNAIL)).save(buffer, "jpeg", quality=80)
    return buffer.getvalue()


def desk_of(request: Request) -> Desk:
    """The desk of a server, made with the first question."""
    state = request.app.state
    if not hasattr(state, "desk"):
        settings = state.settings
        state.desk = Desk(settings.folder, settings.kept_pictures)
    desk: Desk = state.desk
    return desk


SECTION = Section("/", "Pictures", ("live.js", "desk.js"), ("desk.css",), router)
