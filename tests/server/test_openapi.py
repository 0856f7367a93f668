"""The OpenAPI document: it describes every route, with examples that are as it says."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sightline.server.app import create_app
from sightline.server.settings import Settings

DOCUMENT = create_app(Settings()).openapi()
OPERATIONS = [
    (f"{method} {path}", operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def is_as_described(content: dict[str, Any]) -> bool:
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    return Draft202012Validator(schema).is_valid(content["example"])


@pytest.mark.parametrize(
    "operation", [one for _, one in OPERATIONS], ids=[n for n, _ in OPERATIONS]
)
def test_every_request_and_answer_has_an_example(operation) -> None:
    answers = operation["responses"]["200"]["content"]
    contents = [answers[kind] for kind in answers if kind in ("application/json", "text/plain")]
    contents += operation.get("requestBody", {}).get("content", {}).values()
    assert contents
    assert all(map(is_as_described, contents))


def test_a_wrong_example_would_be_noticed() -> None:
    content = DOCUMENT["paths"]["/v1/check"]["post"]["responses"]["200"]["content"]
    wrong = {**content["application/json"], "example": {"model": "bundled"}}
    assert not is_as_described(wrong)


@pytest.mark.parametrize(
    "operation", [one for _, one in OPERATIONS], ids=[n for n, _ in OPERATIONS]
)
def test_every_error_is_a_problem_object(operation) -> None:
    problem = {"$ref": "#/components/schemas/Problem"}
    for status, answer in operation["responses"].items():
        if status != "200":
            assert answer["content"] == {"application/problem+json": {"schema": problem}}
