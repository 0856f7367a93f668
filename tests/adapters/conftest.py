"""A captioner of transformers in a folder; and a server in the OpenAI chat shape."""

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from PIL import Image

from sightline.adapters.tiny import tiny


class Handler(BaseHTTPRequestHandler):
    """Says what it sees: red or blue; a grey picture is nothing."""

    with_log_probs = True
    several = False  # whether it knows `n`
    status = 200
    location: str | None = None
    content: bytes | None = None
    asked: ClassVar[list] = []

    def do_GET(self):  # what a redirect would become
        self.asked.append((self.path, dict(self.headers), None))
        self.send_error(404)

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
            if text == "A wall.":
                pieces = [("A", -0.5), (" wall", -2.0), (".", -0.1)]
            choice["logprobs"] = {"content": [{"token": t, "logprob": p} for t, p in pieces]}
        choices = [choice] * (asked["n"] if self.several else 1)
        body = self.content or json.dumps({"choices": choices}).encode()
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    handler = type("Fresh", (Handler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("captioners") / "tiny"
    model, (image_processor, tokenizer) = tiny("blip")
    for part in (model, image_processor, tokenizer):
        part.save_pretrained(path)
    return path
