"""A captioner behind an HTTP API in the OpenAI chat shape: pictures out, captions in.

It is a black box: it says captions, and where the server gives them, the log-probabilities of their
pieces. Nothing else leaves or enters: what a picture was cut into and put together again is what is
sent, as a PNG in the request.
"""

import base64
import functools
import http.client
import io
import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL.Image import Image

from sightline.errors import SightlineError
from sightline.pictures import Picture, open_picture
from sightline.text.tokenizer import tokenize

KEY = "SIGHTLINE_API_KEY"  # environment variables: the key, and the server that may always have it
KEY_SERVER = "SIGHTLINE_API_URL"
PROMPT = "Describe the picture in one short sentence."
_SIDE = 512  # pixels of the longer side of what is sent
_ANSWER_BYTES = 4_000_000


class ChatError(SightlineError):
    """The server cannot be reached, or does not answer as it should."""


@dataclass(frozen=True)
class SaidWord:
    """A word of an answer; its log-probability is the sum of its pieces', None if not given."""

    text: str
    log_probability: float | None


@dataclass(frozen=True)
class Said:
    """An answer, and its words."""

    text: str
    words: tuple[SaidWord, ...]


@dataclass(frozen=True)
class ChatCaptioner:
    """Asks `URL/chat/completions` for captions.

    >>> ChatCaptioner("http://localhost:8000/v1", "llava").say("photo.jpg")  # doctest: +SKIP
    [Said(text='A dog runs.', …)]
    """

    url: str
    model: str = "default"
    prompt: str = PROMPT
    key: str | None = None  # sent as a bearer token
    seconds: float = 120.0

    @classmethod
    def at(cls, address: str, *, is_typed: bool = True) -> "ChatCaptioner":
        """The captioner at `URL#MODEL`; its key, if it wants one, is in the environment.

        An address that the user did not type, as it comes from a file, may be anyone's: it gets the
        key only if the environment names it as well.

        >>> ChatCaptioner.at("http://localhost:8000/v1#llava").model
        'llava'
        """
        url, _, model = address.partition("#")
        is_trusted = is_typed or url == os.environ.get(KEY_SERVER)
        return cls(url, model or "default", key=os.environ.get(KEY) if is_trusted else None)

    def say(
        self,
        picture: Picture,
        *,
        samples: int = 1,
        temperature: float = 0.0,
        seed: int = 0,
        max_tokens: int = 60,
    ) -> list[Said]:
        """The answer to the prompt, or several that are sampled."""
        image = open_picture(picture, reduced_to=2 * _SIDE)
        image.thumbnail((_SIDE, _SIDE))
        content = [
            {"type": "text", "text": self.prompt},
            {"type": "image_url", "image_url": {"url": _data_url(image)}},
        ]
        asked = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "n": samples,
            "temperature": temperature,
            "seed": seed,
            "max_tokens": max_tokens,
            "logprobs": True,
        }
        answers = [_read(choice, self.url) for choice in self._post(asked)]
        if len(answers) < samples:  # servers that ignore `n` are asked again
            answers += [
                self.say(picture, temperature=temperature, seed=seed + n, max_tokens=max_tokens)[0]
                for n in range(len(answers), samples)
            ]
        return answers[:samples]

    def agreement(self, picture: Picture, words: list[str], *, samples: int = 10) -> list[float]:
        """The share of sampled captions that say each word."""
        said = [
            {word.text for word in each.words}
            for each in self.say(picture, samples=samples, temperature=1.0)
        ]
        return [sum(word in texts for texts in said) / len(said) for word in words]

    def scores(
        self, picture: Picture, words: Sequence[tuple[str, float | None]], *, samples: int = 10
    ) -> list[dict[str, float]]:
        """What speaks for each word of a caption, given with its log-probability, if it has one.

        `log_probability`; `agreement`, the share of captions sampled of the picture that say the
        word; `blank`, how much of that is lost if the picture is replaced by its mean colour.
        """
        if not words:
            return []
        texts = [text for text, _ in words]
        image = open_picture(picture)
        colour = tuple(int(c) for c in np.asarray(image).reshape(-1, 3).mean(0))
        blank = image.copy()
        blank.paste(colour, (0, 0, *image.size))
        agreed = self.agreement(picture, texts, samples=samples)
        without = self.agreement(blank, texts, samples=samples)
        return [
            {"agreement": share, "blank": share - other}
            | ({} if given is None or math.isnan(given) else {"log_probability": given})
            for (_, given), share, other in zip(words, agreed, without, strict=True)
        ]

    def _post(self, asked: dict[str, Any]) -> list[Any]:
        url = f"{self.url.rstrip('/')}/chat/completions"
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(url, json.dumps(asked).encode(), headers)
        try:
            with _opener().open(request, timeout=self.seconds) as answer:
                content = json.loads(answer.read(_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            raise ChatError(f"{url}: the server answered {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ChatError(f"{url}: no answer ({error})") from None
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices:
            raise ChatError(f"{url}: the answer has no 'choices', so it is no chat completion")
        return choices


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: the key and the picture are for the server that was named."""

    def redirect_request(self, *args: Any) -> None:
        return None


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects)


def _data_url(image: Image) -> str:
    file = io.BytesIO()
    image.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _read(choice: Any, url: str) -> Said:
    try:
        text = choice["message"]["content"].strip()
        pieces = (choice.get("logprobs") or {}).get("content") or []
        given = [(str(piece["token"]), float(piece["logprob"])) for piece in pieces]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ChatError(f"{url}: the answer is no chat completion with text") from None
    return Said(text, tuple(words_of(text, given)))


def words_of(text: str, pieces: list[tuple[str, float]]) -> list[SaidWord]:
    """The words of a text, each as likely as all of its pieces together.

    >>> words_of("A dog.", [("A", -0.1), (" d", -0.2), ("og", -0.3), (".", -0.4)])
    [SaidWord(text='a', log_probability=-0.1), SaidWord(text='dog', log_probability=-0.5)]
    >>> words_of("A dog.", [])
    [SaidWord(text='a', log_probability=None), SaidWord(text='dog', log_probability=None)]
    """
    words: list[SaidWord] = []
    joined = "".join(piece for piece, _ in pieces).lower()
    begins = np.cumsum([0, *(len(piece) for piece, _ in pieces)]).tolist()
    at = 0
    for word in tokenize(text):
        found = joined.find(word, at)
        if not pieces or found < 0:
            words.append(SaidWord(word, None))
            continue
        at = found + len(word)
        # A piece is of the word in which its first letter stands.
        total = math.fsum(
            log_probability
            for (piece, log_probability), begin in zip(pieces, begins, strict=False)
            if found <= begin + len(piece) - len(piece.lstrip()) < at
        )
        words.append(SaidWord(word, round(total, 12)))
    return words
