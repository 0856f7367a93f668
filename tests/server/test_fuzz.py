"""Whatever is sent, the server answers with what its OpenAPI document says, and lives on.

`SIGHTLINE_FUZZ=5000` sends that many requests; by default there are few.
"""

import os
import random

import httpx
import pytest

schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

COUNT = int(os.environ.get("SIGHTLINE_FUZZ", "60"))
PATHS = ("/v1/caption", "/v1/check", "/v1/explain", "/v1/chat/completions", "/api/chat")


@pytest.fixture(scope="module")
def schema(server: str):
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


loaded = schemathesis.pytest.from_fixture("schema")


@loaded.parametrize()
@settings(
    max_examples=max(COUNT // 24, 3),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_document_says(case) -> None:
    response = case.call(timeout=120)
    case.validate_response(
        response,
        checks=[
            not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )


def mangled(body: bytes, dice: random.Random) -> bytes:
    """A body with bytes changed, cut out, doubled or thrown in."""
    content = bytearray(body)
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(content) + 1)
        end = min(at + dice.choice((1, 2, 30, 400)), len(content))
        match dice.randrange(4):
            case 0:
                content[at:end] = dice.randbytes(end - at)
            case 1:
                del content[at:end]
            case 2:
                content[at:at] = content[at:end]
            case 3:
                part = dice.choice((b"\r\n", b"--edge", b"--edge--\r\n", b'name="', b"\0", b"\xff"))
                content[at:at] = part
    return bytes(content)


def test_mangled_bodies_are_refused_and_nothing_breaks(server: str, cat: bytes) -> None:
    fields = (("model", "checkpoint"), ("caption", "a cat"), ("n_best", "2"), ("check", "true"))
    parts = [
        f'--edge\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields
    ]
    opening = (
        '--edge\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n'
        "Content-Type: image/jpeg\r\n\r\n"
    )
    form = "".join(parts).encode() + opening.encode() + cat[:4000] + b"\r\n--edge--\r\n"
    message = b'{"role": "user", "content": "a", "images": ["aGVsbG8="]}'
    json = b'{"model": "checkpoint", "messages": [' + message + b"]}"
    kinds = ("multipart/form-data; boundary=edge", "application/json", "multipart/form-data", "x")
    dice = random.Random(25)
    seen = set()
    with httpx.Client(base_url=server, timeout=120) as ask:
        for number in range(COUNT):
            body, kind = (form, kinds[0]) if number % 3 else (json, kinds[1])
            kind = dice.choice(kinds) if dice.random() < 0.1 else kind
            answer = ask.post(
                dice.choice(PATHS), content=mangled(body, dice), headers={"Content-Type": kind}
            )
            seen.add(answer.status_code)
            assert answer.status_code < 500, answer.text
            if answer.status_code >= 400:
                assert set(answer.json()) == {"type", "title", "status", "detail", "message"}
        assert ask.get("/healthz").status_code == 200
    assert {400, 422} & seen
