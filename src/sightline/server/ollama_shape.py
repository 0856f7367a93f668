"""`/api/chat`, `/api/generate` and `/api/tags`, in Ollama's shape.

For photo managers and taggers that ask a local Ollama for captions: give them this server's address
and the name of a captioner. The prompt is not read: a captioner captions.
"""

import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from sightline.server.api import engine_of
from sightline.server.chat import answer, picture_of_data
from sightline.server.problems import describe
from sightline.version import __version__

router = APIRouter(prefix="/api", tags=["Ollama"])
_ERRORS = describe(400, 403, 404, 408, 413, 421, 422, 503, streams="application/x-ndjson")


class OllamaMessage(BaseModel):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    images: list[str] | None = Field(None, description="Base64.", max_length=50)


class OllamaChat(BaseModel):
    """What matters here of a request; the rest is ignored."""

    model: str | None = Field(None, max_length=200)
    messages: list[OllamaMessage] = Field(min_length=1, max_length=200)
    stream: bool = True


class OllamaGenerate(BaseModel):
    """What matters here of a request; the rest is ignored."""

    model: str | None = Field(None, max_length=200)
    prompt: str = ""
    images: list[str] = Field([], description="Base64.", max_length=50)
    stream: bool = True


class OllamaAnswer(BaseModel):
    """With `stream`, this object is on a line of its own (application/x-ndjson)."""

    model: str
    created_at: str
    done: Literal[True] = True
    done_reason: Literal["stop"] = "stop"
    total_duration: int = Field(description="Nanoseconds.")
    message: dict[str, str] | None = None
    response: str | None = None


@router.post(
    "/chat",
    summary="A caption, in the shape of Ollama's chat",
    response_model=OllamaAnswer,
    response_model_exclude_none=True,
    responses=_ERRORS,
)
async def chat(request: Request, asked: OllamaChat) -> Any:
    """The caption of the pictures in the last message that has some."""
    images = next((m.images for m in reversed(asked.messages) if m.images), [])
    model, text, nanoseconds = await _timed(request, asked.model, images)
    message = {"role": "assistant", "content": text}
    return _finish(_answer(model, nanoseconds, message=message), asked.stream)


@router.post(
    "/generate",
    summary="A caption, in the shape of Ollama's generate",
    response_model=OllamaAnswer,
    response_model_exclude_none=True,
    responses=_ERRORS,
)
async def generate(request: Request, asked: OllamaGenerate) -> Any:
    """The caption of the pictures of a request."""
    model, text, nanoseconds = await _timed(request, asked.model, asked.images)
    return _finish(_answer(model, nanoseconds, response=text), asked.stream)


@router.get("/tags", summary="The captioners, in Ollama's shape")
async def tags(request: Request) -> dict[str, list[dict[str, Any]]]:
    models = [
        {"name": name, "model": name, "modified_at": _now(), "size": 0, "digest": ""}
        for name in engine_of(request).shelf.names
    ]
    return {"models": models}


@router.get("/version", summary="The version, in Ollama's shape")
async def version() -> dict[str, str]:
    return {"version": __version__}


async def _timed(
    request: Request, model: str | None, images: list[str] | None
) -> tuple[str, str, int]:
    began = time.perf_counter_ns()
    # Ollama's names may end in a tag, as in llava:latest.
    name = model.removesuffix(":latest") if model else model
    pictures = [picture_of_data(image) for image in images or []]
    return *(await answer(request, name, pictures)), time.perf_counter_ns() - began


def _answer(model: str, nanoseconds: int, **said: Any) -> OllamaAnswer:
    return OllamaAnswer(model=model, created_at=_now(), total_duration=nanoseconds, **said)


def _finish(answered: OllamaAnswer, stream: bool) -> OllamaAnswer | StreamingResponse:
    if not stream:
        return answered

    async def lines() -> AsyncIterator[str]:
        yield json.dumps(answered.model_dump(exclude_none=True)) + "\n"

    return StreamingResponse(lines(), 200, {}, "application/x-ndjson")


def _now() -> str:
    return datetime.now(UTC).isoformat()
