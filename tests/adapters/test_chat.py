"""The client of captioners behind an HTTP API, against a server that is started here."""

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from PIL import Image

from sightline.adapters.chat import ChatCaptioner, ChatError


class Handler(BaseHTTPRequestHandler):
    """Says what it sees: red or blue; a grey picture is nothing."""

    with_log_probs = True
    status = 200
    content: bytes | None = None
    asked: ClassVar[list] = []

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, dict(self.headers), asked))
        picture = asked["messages"][0]["content"][1]["image_url"]["url"]
        image = Image.open(io.BytesIO(base64.b64decode(picture.split(",")[1])))
        pixels = {image.getpixel((x, y)) for x in range(8) for y in range(8)}
        text = "A red ball." if (255, 0, 0) in pixels else "A wall."
        choice = {"message": {"content": text}}
        if self.with_log_probs:
            pieces = [("A", -0.5), (" re", -0.25), ("d", -0.125), (" ball", -1.0), (".", -0.1)]
            choice["logprobs"] = {"content": [{"token": t, "logprob": p} for t, p in pieces]}
        body = self.content or json.dumps({"choices": [choice]}).encode()
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    handler = type("Fresh", (Handler,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield handler, f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()
        thread.join()


@pytest.fixture
def picture():
    image = Image.new("RGB", (8, 8), (0, 0, 255))
    image.paste((255, 0, 0), (0, 0, 4, 8))
    return image


def test_a_word_is_as_likely_as_its_pieces(server, picture):
    handler, url = server
    (said,) = ChatCaptioner(url, "mine", key="secret").say(picture)
    assert said.text == "A red ball."
    assert [(word.text, word.log_probability) for word in said.words] == [
        ("a", -0.5),
        ("red", -0.375),
        ("ball", -1.0),
    ]
    ((path, headers, asked),) = handler.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert asked["model"] == "mine"


def test_a_server_without_log_probabilities(server, picture):
    handler, url = server
    handler.with_log_probs = False
    (said,) = ChatCaptioner(url).say(picture)
    assert [word.log_probability for word in said.words] == [None] * 3


def test_a_server_that_says_one_at_a_time_is_asked_again(server, picture):
    handler, url = server
    assert len(ChatCaptioner(url).say(picture, samples=3, temperature=1.0)) == 3
    assert len(handler.asked) == 3
    assert len({asked["seed"] for _, _, asked in handler.asked}) == 3


def test_scores_of_words(server, picture):
    _, url = server
    captioner = ChatCaptioner(url)
    (said,) = captioner.say(picture)
    a, red, ball = captioner.scores(picture, said, samples=2)
    assert red == {"agreement": 1.0, "blank": 1.0, "log_probability": -0.375}
    assert ball["blank"] == 1.0
    assert a["blank"] == 0.0  # said of a blank, too


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"choices": [{"message": {}}]}'])
def test_what_is_no_answer_is_one_line(server, picture, content):
    handler, url = server
    handler.content = content
    with pytest.raises(ChatError) as error:
        ChatCaptioner(url).say(picture)
    assert "\n" not in str(error.value)


def test_errors_of_the_server(server, picture):
    handler, url = server
    handler.status = 503
    with pytest.raises(ChatError, match="answered 503"):
        ChatCaptioner(url).say(picture)
    with pytest.raises(ChatError, match="no answer"):
        ChatCaptioner("http://127.0.0.1:9/v1", seconds=2).say(picture)
