"""A captioner behind an HTTP API: what is seen of it is what it says."""

import dataclasses
import functools
import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import torch
from PIL.Image import Image, fromarray

from sightline.adapters.chat import ChatCaptioner, Said
from sightline.adapters.pixel_encoder import PixelEncoder, put_together
from sightline.captioner.captioner import Captioner
from sightline.captioner.encoding import AnyPicture
from sightline.captions import Caption, Support, Word
from sightline.decoding.beam import BeamOptions
from sightline.errors import ConfigError, NotApplicableError
from sightline.models.interface import CaptionModel, Memory, State, Step
from sightline.printing import printable
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier, load_classifier
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import Vocabulary

SIDE = 504  # pixels of the square that is sent
_AT_ONCE = 8  # requests
_PIECES = 4  # of a word, at most, for the longest answer
_CHOSEN = {"n_best", "max_length"}  # what can be asked of a server; the rest is its own
_UNASKED = {"groups": 1}  # what commands say where nobody asked for anything


class RemoteModel(CaptionModel):
    """Stands where captioners have a model: there is none on this machine."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.black_box = f"{address}: a server shows captions, and nothing of how it made them"
        self.register_parameter("nothing", torch.nn.Parameter(torch.empty(0), requires_grad=False))

    def encode(self, regions: Regions) -> Memory:
        raise NotApplicableError(self.black_box)

    def start(self, memory: Memory, rows: int = 1) -> State:
        raise NotApplicableError(self.black_box)

    def step(self, tokens: torch.Tensor, state: State, memory: Memory) -> Step:
        raise NotApplicableError(self.black_box)


class RemoteCaptioner(Captioner):
    """Captions by a server in the OpenAI chat shape, checked by what it says when asked again.

    >>> captioner = sightline.load("http://localhost:8000/v1#llava")  # doctest: +SKIP
    >>> captioner.caption("photo.jpg").text  # doctest: +SKIP
    'A dog runs.'
    """

    def __init__(self, address: str, folder: Path | None = None) -> None:
        self.chat = ChatCaptioner.at(address, is_typed=folder is None)
        if folder is not None:
            print(
                f"{printable(folder)}: pictures are sent to {printable(address)}", file=sys.stderr
            )
        encoder, model = PixelEncoder(address, SIDE), RemoteModel(address)
        super().__init__(encoder, model, Vocabulary(()), BeamOptions(), folder)

    def captions(
        self,
        pictures: Sequence[AnyPicture],
        *,
        alternatives: int = 5,
        avoid: Sequence[str] = (),
        require: Sequence[str] = (),
        check: bool = False,
        details: bool = True,
        **options: Any,
    ) -> list[list[Caption]]:
        """The server's answer for each picture, or `n_best` that it samples, each once.

        How it searches is its own matter: no other option of a search can be chosen.
        """
        wishes = {**options, "avoid": avoid or None, "require": require or None}
        asked = {name for name, value in wishes.items() if _UNASKED.get(name) != value}
        if refused := sorted(asked - _CHOSEN):
            name = refused[0].replace("_", " ")
            raise ConfigError(
                f"{self.chat.url}: '{name}' cannot be chosen: a server searches its captions itself"
            )
        classifier = self.support_classifier if check else None
        images = [fromarray(encoded.pixels[0].cpu().numpy()) for encoded in self.encode(pictures)]
        count = options.get("n_best", 1)
        longest = options.get("max_length", self.options.constraints.max_length)
        ask = functools.partial(
            self.chat.say,
            samples=count,
            temperature=0.0 if count == 1 else 1.0,
            max_tokens=_PIECES * longest,
        )
        answers = _together(ask, images)
        said = [
            [_caption(each, image) for each in {each.text: each for each in of_image}.values()]
            for image, of_image in zip(images, answers, strict=True)
        ]
        if classifier is None:
            return said
        return [
            [self._checked(classifier, image, caption) for caption in of_picture]
            for image, of_picture in zip(images, said, strict=True)
        ]

    @functools.cached_property
    def support_classifier(self) -> SupportClassifier:
        """The classifier in the folder that `sightline fit-support` made for this server."""
        if self.checkpoint is None:
            raise ConfigError(
                f"{self.chat.url}: not fitted to check words; run sightline fit-support on it with "
                "-o FOLDER, and give that folder as the model"
            )
        return load_classifier(self.checkpoint, self.device)

    def word_scores(self, image: Image, caption: Caption) -> list[dict[str, float]]:
        """What speaks for each content word of a caption, in order."""
        words = [word for word in caption.words if is_content(word.text)]
        return self.chat.scores(image, [(word.text, word.log_probability) for word in words])

    def _check(
        self,
        classifier: SupportClassifier,
        regions: Regions,
        captions: Sequence[Caption],
        rows: Sequence[int],
    ) -> list[Caption]:
        assert isinstance(self.encoder, PixelEncoder)
        shown = put_together(regions, self.encoder.cell).cpu().numpy()
        return [
            self._checked(classifier, fromarray(shown[row]), caption)
            for caption, row in zip(captions, rows, strict=True)
        ]

    def _checked(self, classifier: SupportClassifier, image: Image, caption: Caption) -> Caption:
        scores = self.word_scores(image, caption)
        if any(set(classifier.names) - set(each) for each in scores):
            raise ConfigError(
                f"{self.chat.url}: gives no log-probabilities any more, which its check was fitted "
                "with; run sightline fit-support again"
            )
        supports: Iterator[Support] = iter(classifier.classify(scores))
        words = tuple(
            dataclasses.replace(word, support=next(supports)) if is_content(word.text) else word
            for word in caption.words
        )
        return dataclasses.replace(caption, words=words)

    def _refuse(self, what: str) -> NoReturn:
        raise NotApplicableError(f"{what} is not possible: {self.model.black_box}")

    def read(self, *args: Any, **options: Any) -> NoReturn:
        """Not possible: a server gives no probabilities of words that it is given."""
        self._refuse("reading a caption that somebody else wrote")

    def counterfactual(self, *args: Any, **options: Any) -> NoReturn:
        """Not possible, for the same reason."""
        self._refuse("asking about a word that the caption does not say")

    def explain(self, *args: Any, **options: Any) -> NoReturn:
        """Not possible: what it looked at stays with the server."""
        self._refuse("an explanation")

    def report_steps(self, *args: Any, **options: Any) -> NoReturn:
        """Not possible: a report is made of explanations."""
        self._refuse("an explanation")


Captioner._remote = RemoteCaptioner


def _together(ask: Any, images: Sequence[Image]) -> list[list[Said]]:
    """The answers for each picture; several are asked for at once."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(ask, images))


def _caption(said: Said, image: Image) -> Caption:
    words = tuple(
        Word(word.text, math.nan if word.log_probability is None else word.log_probability, (), ())
        for word in said.words
    )
    total = math.fsum(word.log_probability for word in words)
    return Caption(said.text, words, total, total / max(len(words), 1), (), image)
