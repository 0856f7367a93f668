"""`/v1/chat/completions`, in OpenAI's shape: the captioner of programs that speak it.

The prompt is not read: a captioner captions. Pictures are sent in the request; none is fetched.
"""

import json
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from sightline.server.chat import answer, picture_of_data, seconds
from sightline.server.problems import describe

router = APIRouter(prefix="/v1", tags=["OpenAI"])


class ImageAddress(BaseModel):
    url: str = Field(description="data:image/jpeg;base64,…")


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class ImagePart(BaseModel):
    type: Literal["image_url"]
    image_url: ImageAddress


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None


class ChatRequest(BaseModel):
    """What matters here of a request; the rest is ignored."""

    model: str | None = Field(None, max_length=200)
    messages: list[Message] = Field(min_length=1, max_length=200)
    stream: bool = False


class ChoiceMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    index: int = 0
    message: ChoiceMessage
    finish_reason: Literal["stop"] = "stop"


class Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int
    total_tokens: int


class ChatAnswer(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


@router.post(
    "/chat/completions",
    summary="A caption, in the shape of OpenAI's chat completions",
    response_model=ChatAnswer,
    responses=describe(400, 403, 404, 408, 413, 421, 422, 503, streams="text/event-stream"),
)
async def chat(request: Request, asked: ChatRequest) -> Any:
    """The caption of the pictures in the last question. With `stream`, as server-sent events."""
    parts = [part for part in _last_question(asked) if isinstance(part, ImagePart)]
    model, text = await answer(
        request, asked.model, [picture_of_data(part.image_url.url) for part in parts]
    )
    name, created, words = f"chatcmpl-{uuid.uuid4().hex}", seconds(), len(text.split())
    if asked.stream:
        return StreamingResponse(_events(name, created, model, text), 200, {}, "text/event-stream")
    return ChatAnswer(
        id=name,
        created=created,
        model=model,
        choices=[Choice(message=ChoiceMessage(content=text))],
        usage=Usage(completion_tokens=words, total_tokens=words),
    )


def _last_question(asked: ChatRequest) -> list[TextPart | ImagePart]:
    """The parts of the last message that has a picture; one without is about the one before."""
    for message in reversed(asked.messages):
        if isinstance(message.content, list) and any(
            isinstance(part, ImagePart) for part in message.content
        ):
            return message.content
    return []


async def _events(name: str, created: int, model: str, text: str) -> AsyncIterator[str]:
    shared = {"id": name, "object": "chat.completion.chunk", "created": created, "model": model}
    for delta, reason in (({"role": "assistant", "content": text}, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield f"data: {json.dumps({**shared, 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"
