"""The page for one's own pictures: the explanation page, alive.

A picture is sent once and kept for a while, so that what is asked about it next is quick. The one
that is looked at is explained; others that were sent are captioned meanwhile, for their thumbnails.
"""

import contextlib
import io
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Depends, File, Form, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from sightline.errors import SightlineError
from sightline.explain.methods import find_method
from sightline.pictures import open_picture
from sightline.report.heatmaps import fit
from sightline.report.page_data import tone_of
from sightline.report.report import DEFAULT_METHODS
from sightline.report.wording import readable
from sightline.server.api import engine_of
from sightline.server.engine import Engine
from sightline.server.live_report import Asked, lines
from sightline.server.presence import unless_gone
from sightline.server.sections import Section
from sightline.server.tray import Tray
from sightline.server.unchanged import unless_unchanged

router = APIRouter(prefix="/desk", include_in_schema=False)
_THUMBNAIL = 320  # pixels of the longer side
_LISTED = 2000  # pictures of a folder that the page shows


@router.get("/about")
async def about(request: Request, later: BackgroundTasks) -> dict[str, Any]:
    """What can be chosen on the page. Meanwhile the captioner is loaded, for it will be asked."""
    tray, engine = tray_of(request), engine_of(request)
    later.add_task(_load, engine)
    return {
        "models": list(engine.shelf.names),
        "folder": [item.inside for item in tray.folder[:_LISTED]],
        "more": max(len(tray.folder) - _LISTED, 0),
    }


@router.get("/thumbnails/{number}")
async def thumbnail(request: Request, number: int) -> Response:
    """A small picture of the folder."""
    item = tray_of(request).in_folder(number)
    assert item.path is not None
    decode = engine_of(request).decode
    return await decode(unless_unchanged, request, item.path, lambda: _small(item.read()))


@router.get("/kept/{key}")
async def thumbnail_of_kept(request: Request, key: str) -> Response:
    """A small picture of one that was sent, for a browser that cannot show the file (HEIC)."""
    content = await engine_of(request).decode(_small, tray_of(request).find(key).content)
    return Response(content, media_type="image/jpeg", headers={"Cache-Control": "max-age=600"})


async def keep(
    request: Request,
    image: Annotated[UploadFile | None, File()] = None,
    kept: Annotated[str | None, Form(max_length=100)] = None,
    number: Annotated[int | None, Form()] = None,
) -> str:
    """The key of the picture that is asked about: sent now, kept from before, or of the folder."""
    tray = tray_of(request)
    if image is not None:
        return tray.keep((image.filename or "picture")[:200], await image.read())
    if number is not None:
        item = tray.in_folder(number)
        return tray.keep(item.inside, await engine_of(request).decode(item.read))
    if kept is None:
        raise HTTPException(422, "send a picture, or say which of those sent before is meant")
    tray.find(kept)
    return kept


Key = Annotated[str, Depends(keep)]
Model = Annotated[str | None, Form(max_length=200)]


@router.post("/caption")
async def caption(request: Request, key: Key, model: Model = None) -> dict[str, Any]:
    """Caption a picture that nobody looks at yet: after all that somebody waits for."""
    engine, picture = engine_of(request), tray_of(request).find(key)
    looking = picture.look(engine, engine.shelf.find(model), background=True)
    best = (await unless_gone(request, looking)).beam[0]
    return {
        "kept": key,
        "text": best.text,
        "words": [
            {"text": readable(word.text), "verdict": word.support and word.support.verdict}
            for word in best.words
        ],
        "tone": tone_of(best.words),
        "unfamiliar": bool(best.unfamiliar),
    }


@router.post("/explain")
async def explain(
    request: Request,
    key: Key,
    model: Model = None,
    caption: Annotated[str | None, Form(max_length=600)] = None,
    why_not: Annotated[list[str], Form(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    method: Annotated[list[str], Form(max_length=20)] = [],  # noqa: B006
) -> StreamingResponse:
    """Explain a picture, as lines of JSON that come as they are computed."""
    engine = engine_of(request)
    methods = tuple(dict.fromkeys(method)) or DEFAULT_METHODS
    for one in methods:
        find_method(one)
    picture = tray_of(request).find(key)
    asked = Asked(key, picture, engine.shelf.find(model), caption, tuple(why_not), methods)
    return StreamingResponse(lines(request, engine, asked), media_type="application/x-ndjson")


async def _load(engine: Engine) -> None:
    with contextlib.suppress(SightlineError):  # whoever asks it for something hears the reason
        await engine.captioner(engine.shelf.find(None))


def _small(content: bytes) -> bytes:
    picture = open_picture(content, reduced_to=_THUMBNAIL)
    buffer = io.BytesIO()
    picture.resize(fit(*picture.size, _THUMBNAIL)).save(buffer, "jpeg", quality=80)
    return buffer.getvalue()


def tray_of(request: Request) -> Tray:
    """The pictures of a server's pages, listed with the first question."""
    state = request.app.state
    if not hasattr(state, "tray"):
        state.tray = Tray(state.settings.folder, state.settings.kept_pictures)
    tray: Tray = state.tray
    return tray


SCRIPTS = ("exchange.js", "live.js", "tray.js", "desk.js")
SECTION = Section("/", "Pictures", SCRIPTS, ("desk.css",), router)
