"""Every error of the server is one problem object (RFC 9457): a status, a title and a sentence."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from sightline.errors import PictureTooLargeError, SightlineError
from sightline.memory import is_out_of_memory
from sightline.printing import printable
from sightline.server.presence import ClientGoneError
from sightline.server.shelf import UnknownCaptionerError

RETRY_SECONDS = 1
_log = logging.getLogger("sightline.server")


class Problem(BaseModel):
    """What was wrong with a request, and what to do (RFC 9457)."""

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["the picture holds text, not a picture: name a picture"])
    message: str = Field(description="The detail again, where OpenAI's clients look for it.")


class ProblemResponse(JSONResponse):
    media_type = "application/problem+json"


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> ProblemResponse:
    """The response for an error.

    >>> problem(404, "no such page").body
    b'{"type":"about:blank","title":"Not Found","status":404,\
"detail":"no such page","message":"no such page"}'
    """
    said = printable(detail)
    content = {"title": _title(status), "status": status, "detail": said, "message": said}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS), **(headers or {})}
    return ProblemResponse({"type": "about:blank", **content}, status, headers)


def describe(*statuses: int, streams: str | None = None) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for the OpenAPI document; and the type of what it can stream.

    >>> describe(413)[413]["description"]
    'Content Too Large'
    """
    streamed: dict[int | str, dict[str, Any]] = {200: {"content": {streams: {"schema": {}}}}}
    return (streamed if streams else {}) | {
        status: {
            "description": _title(status),
            "content": {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            },
        }
        for status in statuses
    }


def add_handlers(app: FastAPI) -> None:
    """Answer whatever goes wrong in a route with a problem object."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> ProblemResponse:
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> ProblemResponse:
        return problem(422, "; ".join(_sentence(one) for one in error.errors()[:5]))

    @app.exception_handler(SightlineError)
    async def cannot(request: Request, error: SightlineError) -> ProblemResponse:
        return problem(*sentence_of(error))

    @app.exception_handler(ClientGoneError)
    async def gone(request: Request, error: ClientGoneError) -> ProblemResponse:
        return problem(408, "the client has gone")  # nobody hears it; the log does

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> ProblemResponse:
        return problem(*sentence_of(error))


def sentence_of(error: Exception) -> tuple[int, str]:
    """The status of an error, and what to say of it; a bug goes to the log.

    >>> sentence_of(SightlineError("the picture is damaged"))
    (422, 'the picture is damaged')
    """
    if isinstance(error, SightlineError):
        statuses = {PictureTooLargeError: 413, UnknownCaptionerError: 404}
        return statuses.get(type(error), 422), str(error)
    if is_out_of_memory(error):
        return 503, "there is not enough memory for this request now"
    _log.error("a request failed", exc_info=error)
    return 500, "a bug in Sightline: the server's log says where; please report it"


def _sentence(error: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"][1:]) or "the request"
    return f"{place}: {error['msg']}"


def _title(status: int) -> str:
    """As RFC 9110 calls it; Python did not always."""
    renamed = {413: "Content Too Large", 422: "Unprocessable Content"}
    return renamed.get(status) or HTTPStatus(status).phrase
