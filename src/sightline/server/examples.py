"""An example of each request and its answer, for the OpenAPI document."""

from typing import Any

from sightline.version import __version__

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel, in base64."""

_TEXT = "a dog runs"
_ALTERNATIVES = [{"text": "cat", "log_probability": -2.4}]
_SEEN = {"score": 0.93, "verdict": "seen", "evidence": {"occlusion": 0.41, "blank": 0.38}}
_UNSEEN = {"score": 0.12, "verdict": "not supported", "evidence": {"occlusion": 0.02, "blank": 0.0}}


def _word(text: str, log_probability: float, support: Any, alternatives: Any = ()) -> Any:
    return {
        "text": text,
        "log_probability": log_probability,
        "alternatives": list(alternatives),
        "support": support,
        "attention": None,
    }


_CAPTION = {
    "text": _TEXT,
    "log_probability": -3.1,
    "score": -1.2,
    "unfamiliar": False,
    "words": [
        _word("a", -0.1, None),
        _word("dog", -0.2, _SEEN, _ALTERNATIVES),
        _word("runs", -1.6, _UNSEEN),
    ],
    "boxes": None,
}
_UNKNOWN = {"text": "doggo", "nearest": "dog", "nearest_by": "form"}
_EXPLANATION = {
    "method": "contrastive_lrp",
    "word": "dog",
    "place": 1,
    "total": 8.4,
    "image": 6.1,
    "language": 1.2,
    "image_share": 0.84,
    "bias": 0.9,
    "epsilon": 0.1,
    "encoder": 0.1,
    "remainder": 0.0,
    "previous": [{"text": "<start>", "relevance": 0.3}, {"text": "a", "relevance": 0.9}],
    "map": {"scale": 0.02, "png": PIXEL, "values": None},
}
_UNSAID = {"text": "cat", "place": 1, "log_probability": -2.4, "everywhere": [-9.8, -2.4, -8.1]}
_CAPTIONS = {"model": "bundled", "captions": [_CAPTION]}
_CHECK = {"model": "bundled", "caption": _CAPTION, "unknown": [_UNKNOWN]}
_EXPLANATIONS = {
    "model": "bundled",
    "caption": _CAPTION,
    "explanations": [_EXPLANATION],
    "unsaid": [_UNSAID],
    "unknown": [],
    "skipped": {},
}
_MODEL = {"id": "bundled", "object": "model", "created": 0, "owned_by": "sightline"}
_QUESTION = [
    {"type": "text", "text": "Describe this picture."},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
]
_SENTENCE = "A dog runs."
_COMPLETION = {
    "id": "chatcmpl-1f0c",
    "object": "chat.completion",
    "created": 1767225600,
    "model": "bundled",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": _SENTENCE},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 3},
}
_OLLAMA = {
    "model": "bundled",
    "created_at": "2026-01-01T00:00:00+00:00",
    "done": True,
    "done_reason": "stop",
    "total_duration": 412000000,
}
_TAG = {
    "name": "bundled",
    "model": "bundled",
    "modified_at": "2026-01-01T00:00:00+00:00",
    "size": 0,
    "digest": "",
}
_IMAGES = [PIXEL]

EXAMPLES: dict[str, tuple[Any, Any]] = {
    "/v1/models": (None, {"object": "list", "data": [_MODEL], "methods": ["lrp", "grad_cam"]}),
    "/v1/caption": ({"image": "photo.jpg", "check": True, "n_best": 1}, _CAPTIONS),
    "/v1/check": ({"image": "photo.jpg", "caption": _TEXT}, _CHECK),
    "/v1/explain": ({"image": "photo.jpg", "why_not": ["cat"], "maps": "png"}, _EXPLANATIONS),
    "/v1/chat/completions": (
        {"model": "bundled", "messages": [{"role": "user", "content": _QUESTION}]},
        _COMPLETION,
    ),
    "/api/chat": (
        {
            "model": "bundled",
            "messages": [{"role": "user", "content": "Describe it.", "images": _IMAGES}],
            "stream": False,
        },
        {**_OLLAMA, "message": {"role": "assistant", "content": _SENTENCE}},
    ),
    "/api/generate": (
        {"model": "bundled", "prompt": "Describe it.", "images": _IMAGES, "stream": False},
        {**_OLLAMA, "response": _SENTENCE},
    ),
    "/api/tags": (None, {"models": [_TAG]}),
    "/api/version": (None, {"version": __version__}),
    "/healthz": (None, {"status": "ok"}),
    "/metrics": (None, 'sightline_requests_total{route="/v1/caption",status="200"} 12.0\n'),
}
"""What is asked, or None, and what is answered, by the path."""


def add_examples(document: dict[str, Any]) -> None:
    """Put the examples into an OpenAPI document, where it describes what they are of."""
    for path, (asked, answered) in EXAMPLES.items():
        for operation in document["paths"].get(path, {}).values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content["example"] = asked
            for kind, content in operation["responses"]["200"]["content"].items():
                if kind in ("application/json", "text/plain"):
                    content["example"] = answered
