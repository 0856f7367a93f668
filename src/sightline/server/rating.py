"""The sections of a blind comparison: what raters see, and what whoever runs it sees.

A rater's requests hold the rater's own token, and nothing that is answered tells which system is
which: no names, no numbers of the study, and the same bytes whatever the sides are.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from sightline.blind.answers import Answers, export
from sightline.blind.preference import attention
from sightline.blind.study import PICTURES, Rater
from sightline.errors import DataError
from sightline.experiments.paper0_table4 import Options, open_study, read_study
from sightline.files import MEGABYTE, read_bytes
from sightline.server.problems import describe
from sightline.server.sections import Section

_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


class Answer(BaseModel):
    """A rater's choices about one pair."""

    place: int = Field(ge=0, le=10**9)
    choices: dict[Annotated[str, Field(max_length=60)], Annotated[str, Field(max_length=10)]] = (
        Field(max_length=50)
    )
    seconds: float | None = Field(None, ge=0, le=10**6)


def rating_sections(folder: Path, answers: Answers) -> tuple[Section, Section]:
    """The page of the raters, and the page over the whole study."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(answers.close)

    raters = Section(
        "/rate/{token}",
        "Compare captions",
        scripts=("exchange.js", "rate.js"),
        styles=("rate.css",),
        router=_for_raters(folder, answers),
        linked=False,
        public=("/rate/", "/assets/"),
        lifespan=lifespan,
    )
    organiser = Section(
        "/blind",
        "Blind comparison",
        scripts=("exchange.js", "blind.js"),
        styles=("rate.css",),
        router=_for_the_organiser(folder, answers),
    )
    return raters, organiser


def _for_raters(folder: Path, answers: Answers) -> APIRouter:
    router = APIRouter(prefix="/rate/{token}", tags=["rating"], responses=describe(404, 422))
    study = answers.study

    def rater_of(token: str) -> Rater:
        rater = study.rater(token)
        if rater is None:
            raise HTTPException(404, "this link is not known: ask whoever sent it to you")
        return rater

    def shown(rater: Rater, place: int) -> Any:
        sheet = answers.sheets[rater.name]
        if not 0 <= place < len(sheet):
            raise HTTPException(404, "there is no such pair")
        return sheet[place]

    @router.get("/sheet")
    def get_sheet(token: str) -> dict[str, Any]:
        rater = rater_of(token)
        return {
            "questions": [asdict(question) for question in study.questions],
            "pairs": len(answers.sheets[rater.name]),
            "given": answers.given(rater),
        }

    @router.get("/pairs/{place}")
    def get_pair(token: str, place: int) -> dict[str, str]:
        left, right = shown(rater_of(token), place).sides
        return {"left": left, "right": right}

    @router.get("/pictures/{place}", response_class=Response)
    def get_picture(token: str, place: int) -> Response:
        name = shown(rater_of(token), place).of.picture
        content = read_bytes(folder / PICTURES / name, 64 * MEGABYTE)
        headers = {"Cache-Control": "private, max-age=3600"}
        return Response(content, media_type="image/jpeg", headers=headers)

    @router.post("/answers")
    def give(token: str, answer: Answer) -> dict[str, Any]:
        rater = rater_of(token)
        shown(rater, answer.place)
        answers.give(rater, answer.place, answer.choices, answer.seconds)
        return {"given": len(answers.given(rater))}

    return router


def _for_the_organiser(folder: Path, answers: Answers) -> APIRouter:
    router = APIRouter(prefix="/blind", tags=["blind comparison"], responses=describe(404, 422))
    study = answers.study

    @router.get("/state")
    def state() -> dict[str, Any]:
        checks = attention(study, answers.ratings())
        return {
            "pairs": len(study.pairs),
            "identical": len(study.identical),
            "questions": [asdict(question) for question in study.questions],
            "raters": [
                {
                    "name": rater.name,
                    "link": f"/rate/{rater.token}",
                    "done": len(answers.given(rater)),
                    "of": len(answers.sheets[rater.name]),
                    "checks": asdict(checks[rater.name]),
                    "counted": checks[rater.name].passed(),
                }
                for rater in study.raters
            ],
        }

    @router.get("/results")
    def results() -> dict[str, Any]:
        try:
            return read_study(open_study(folder), Options())
        except DataError:
            raise HTTPException(404, "nobody has answered yet") from None

    @router.get("/tables/{format}", response_class=Response)
    def get_table(format: Literal["csv", "jsonl"]) -> Response:
        name = f'attachment; filename="answers.{format}"'
        headers = {"Content-Disposition": name}
        return Response(export(answers, format), media_type=_TYPES[format], headers=headers)

    return router
