"""Programs that speak to OpenAI or to Ollama can be told to speak to this server instead."""

import base64

import httpx
import pytest

ollama = pytest.importorskip("ollama")
openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def said(server: str, cat: bytes) -> str:
    answer = httpx.post(f"{server}/v1/caption", files={"image": cat}, timeout=60).json()
    text = answer["captions"][0]["text"]
    return text[0].upper() + text[1:] + "."


@pytest.fixture(scope="module")
def chatgpt(server: str):
    with openai.OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0) as client:
        yield client


def question(cat: bytes, url: str | None = None) -> list[dict]:
    url = url or f"data:image/jpeg;base64,{base64.b64encode(cat).decode()}"
    content = [
        {"type": "text", "text": "What is in this picture?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    return [{"role": "system", "content": "Be short."}, {"role": "user", "content": content}]


def test_the_openai_client_gets_a_caption(chatgpt, cat, said) -> None:
    assert [model.id for model in chatgpt.models.list()] == ["checkpoint"]
    answer = chatgpt.chat.completions.create(
        model="checkpoint", messages=question(cat), max_tokens=50, temperature=0.2
    )
    assert answer.choices[0].message.content == said
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == len(said.split())


def test_the_openai_client_gets_it_as_a_stream(chatgpt, cat, said) -> None:
    events = list(
        chatgpt.chat.completions.create(model="checkpoint", messages=question(cat), stream=True)
    )
    assert "".join(event.choices[0].delta.content or "" for event in events) == said
    assert events[-1].choices[0].finish_reason == "stop"


def test_the_openai_client_is_told_what_is_wrong(chatgpt, cat) -> None:
    create = chatgpt.chat.completions.create
    with pytest.raises(openai.NotFoundError, match="no captioner is called 'gpt-9'"):
        create(model="gpt-9", messages=question(cat))
    with pytest.raises(openai.BadRequestError, match="not fetched"):
        create(model="checkpoint", messages=question(cat, "http://127.0.0.1:1/cat.jpg"))
    with pytest.raises(openai.BadRequestError, match="no picture"):
        create(model="checkpoint", messages=[{"role": "user", "content": "Hello"}])
    with pytest.raises(openai.UnprocessableEntityError, match="holds text"):
        create(model="checkpoint", messages=question(b"hello, this is no picture"))


def test_the_ollama_client_gets_a_caption(server, cat, said) -> None:
    client = ollama.Client(host=server)
    assert [model.model for model in client.list().models] == ["checkpoint"]
    message = {"role": "user", "content": "Describe it.", "images": [cat]}
    answer = client.chat(model="checkpoint", messages=[message])
    assert answer.message.content == said
    assert answer.done
    assert answer.total_duration > 0
    streamed = client.chat(model="checkpoint:latest", messages=[message], stream=True)
    assert "".join(part.message.content for part in streamed) == said
    generated = client.generate(model="checkpoint", prompt="Describe it.", images=[cat])
    assert generated.response == said


def test_the_ollama_client_is_told_what_is_wrong(server, cat) -> None:
    client = ollama.Client(host=server)
    with pytest.raises(ollama.ResponseError, match="no captioner is called 'llava'") as told:
        client.generate(model="llava", prompt="", images=[cat])
    assert told.value.status_code == 404
