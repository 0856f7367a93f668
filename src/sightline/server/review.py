"""The section *Review*: a grid over a folder, where a person accepts, edits or rejects captions."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import StreamingResponse
from PIL.Image import Resampling
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from sightline.bulk.items import readable
from sightline.captioner import Captioner
from sightline.pictures import open_picture
from sightline.review.captioning import Captioning
from sightline.review.collection import FILTERS, MOST_TEXT, ORDERS, ConflictError, Entry, Review
from sightline.review.export import export_sidecars, export_table
from sightline.server.problems import describe
from sightline.server.sections import Section
from sightline.server.unchanged import unless_unchanged

_MOST_ENTRIES = 200  # of one request; a screen shows fewer
_SIDES = (320, 1600)  # of a thumbnail, and of a picture to look at
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


class Decision(BaseModel):
    """What a person decides about a picture."""

    id: int = Field(ge=1, le=2**62)
    state: Literal["open", "accepted", "edited", "rejected"]
    text: str | None = Field(None, max_length=MOST_TEXT)
    after: int = Field(ge=0, le=2**62, description="the decision that the person saw")


class Run(BaseModel):
    """Whether to caption in the background."""

    run: bool


def review_section(review: Review) -> Section:
    """The page over a review. Captions are made while the server runs, by its captioner."""
    captioning = Captioning(review)
    router = APIRouter(prefix="/review", tags=["review"], responses=describe(404, 409, 422))

    def state() -> dict[str, Any]:
        return {
            "folder": readable(review.folder.resolve().name),
            "counts": review.counts(),
            "captioning": captioning.is_running,
            "error": captioning.error,
        }

    @router.get("/state")
    def get_state() -> dict[str, Any]:
        return state()

    @router.get("/order")
    def get_order(filter: str = "all", order: str = "doubt", text: str = "") -> dict[str, Any]:
        ids = review.order(filter, order, text.strip()[:200])
        return {"ids": ids, "filters": list(FILTERS), "orders": list(ORDERS), **state()}

    @router.get("/entries")
    def get_entries(
        ids: Annotated[str, Query(pattern=r"^[0-9]{1,15}(,[0-9]{1,15})*$")],
    ) -> list[dict[str, Any]]:
        wanted = [int(id) for id in ids.split(",")][:_MOST_ENTRIES]
        return [_to_json(entry) for entry in review.entries(wanted)]

    @router.post("/decisions")
    def decide(decision: Decision) -> dict[str, Any]:
        try:
            entry = review.decide(decision.id, decision.state, decision.text, decision.after)
        except ConflictError as error:
            raise HTTPException(409, str(error)) from None
        return {"entry": _to_json(entry), "counts": review.counts()}

    @router.get("/pictures/{id}", response_class=Response)
    def get_picture(request: Request, id: int, side: Literal["320", "1600"] = "320") -> Response:
        path = review.path(id) if 0 < id < 2**62 else None
        if path is None:
            raise HTTPException(404, "there is no such picture")
        return unless_unchanged(request, path, lambda: _small(path, int(side)))

    @router.post("/captioning")
    def run(wanted: Run) -> dict[str, Any]:
        if wanted.run:
            review.scan()
            captioning.start()
        else:
            captioning.stop(wait=30)
        return state()

    @router.get("/tables/{format}", response_class=StreamingResponse)
    def get_table(format: Literal["csv", "jsonl"], undecided: bool = False) -> StreamingResponse:
        name = f'attachment; filename="captions.{format}"'
        return StreamingResponse(
            export_table(review, format, undecided=undecided),
            media_type=_TYPES[format],
            headers={"Content-Disposition": name},
        )

    @router.post("/sidecars/{format}")
    def write_sidecars(format: Literal["txt", "xmp"]) -> dict[str, Any]:
        return export_sidecars(review, format).to_json()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        engine = app.state.engine

        def load() -> Captioner:  # in its turn, so that there is one in memory
            name = engine.shelf.find(None)
            waiting = asyncio.run_coroutine_threadsafe(engine.captioner(name), loop)
            captioner: Captioner = waiting.result()
            return captioner

        captioning.load = load
        captioning.start()
        yield
        await run_in_threadpool(captioning.stop, 60)  # a thread amid a batch would abort Python
        review.close()

    return Section(
        "/review",
        "Review",
        scripts=("exchange.js", "review_grid.js", "review.js"),
        styles=("review.css",),
        router=router,
        lifespan=lifespan,
    )


def _small(path: Path, side: int) -> bytes:
    picture = open_picture(path, reduced_to=side)
    picture.thumbnail((side, side), Resampling.LANCZOS)
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=82)
    return content.getvalue()


def _to_json(entry: Entry) -> dict[str, Any]:
    words = [
        {name: word.get(name) for name in ("text", "verdict", "support")} for word in entry.words
    ]
    return asdict(entry) | {"words": words}
