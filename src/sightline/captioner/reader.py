"""A captioner as a reader of pictures, and of captions that it is given."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from PIL.Image import Image
from torch.nn.utils.rnn import pad_sequence

from sightline.captioner.encoding import (
    ONE,
    AnyPicture,
    Prepared,
    encode_pictures,
    encode_prepared,
    open_for,
)
from sightline.captioner.wording import ids_of_word, nearest_known, require_known, stand_in
from sightline.captions import Caption, Counterfactual, UnknownWord
from sightline.decoding.beam import BeamOptions
from sightline.decoding.description import describe_captions
from sightline.decoding.hypotheses import Hypotheses
from sightline.decoding.words import describe_words, next_words
from sightline.encoded_picture import EncodedPicture
from sightline.encoders.encoder import Encoder
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel
from sightline.pictures import Picture
from sightline.regions import Regions
from sightline.support.familiarity import Familiarity, load_familiarity
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import END, PAD, Vocabulary


class CaptionReader:
    """An image encoder, a captioning model and its vocabulary: how likely are given words?"""

    def __init__(
        self,
        encoder: Encoder,
        model: CaptionModel,
        vocabulary: Vocabulary,
        options: BeamOptions | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self.encoder, self.model, self.vocabulary = encoder, model.eval(), vocabulary
        self.options = options or BeamOptions()
        self.checkpoint = checkpoint  # the folder it comes from, if it comes from one

    @property
    def device(self) -> torch.device:
        """Where the captioner computes."""
        return next(self.model.parameters()).device

    def open(self, picture: Picture) -> Image:
        """Open a picture upright, decoded no larger than needed; raises a `PictureError`."""
        return open_for(self.encoder, picture)

    @overload
    def encode(self, pictures: AnyPicture) -> EncodedPicture: ...  # type: ignore[overload-overlap]
    @overload
    def encode(self, pictures: Sequence[AnyPicture]) -> list[EncodedPicture]: ...
    @torch.inference_mode(False)  # what is encoded may be explained later, with gradients
    def encode(self, pictures: AnyPicture | Sequence[AnyPicture]) -> Any:
        """Open and encode a picture, or each of a list. Encoded pictures are returned unchanged.

        >>> picture = captioner.encode("photo.jpg")  # doctest: +SKIP
        >>> captioner.explain(picture, captioner.caption(picture))  # doctest: +SKIP
        """
        if isinstance(pictures, ONE):
            return self.encode([pictures])[0]
        return encode_pictures(self.encoder, pictures, self.device)

    def encode_prepared(
        self, prepared: Sequence[Prepared], images: Sequence[Image] | None = None
    ) -> list[EncodedPicture]:
        """Encode what `encoder.preprocessing` made of pictures, such as in other threads.

        Without `images`, the pictures are as the encoder sees them.
        """
        return encode_prepared(self.encoder, prepared, images, self.device)

    def read(self, picture: AnyPicture, caption: str, *, alternatives: int = 5) -> Caption:
        """A caption that somebody else wrote, with the probabilities that its words have here.

        A word that the captioner does not know is read as the nearest one that it knows by form or
        by meaning, or as `<unknown>` if none is near; `Word.read_as` says so.

        >>> captioner.read("photo.jpg", "A cat sleeps.").words[1].alternatives  # doctest: +SKIP
        (('dog', -0.3), …)
        """
        tokens = tokenize(caption)
        if not tokens:
            raise ConfigError(f"the caption '{caption}' has no words")
        read_as = [
            None if token in self.vocabulary else stand_in(self.vocabulary, token)
            for token in tokens
        ]
        ids = self.vocabulary.encode(caption)
        if any(read_as):
            read_words = [other or token for token, other in zip(tokens, read_as, strict=True)]
            ids = [
                i
                for place, word in enumerate(read_words)
                for i in self.vocabulary.encode_word(word, first=place == 0)
            ]
        (read,) = self._read(self.encode(picture), [[*ids, END]], alternatives)
        if len(read.words) != len(tokens):  # its own pieces make other words of it
            return dataclasses.replace(read, given=True)
        words = zip(read.words, tokens, read_as, strict=True)
        return dataclasses.replace(
            read,
            text=" ".join(tokens),
            words=tuple(
                dataclasses.replace(word, text=token, read_as=other) for word, token, other in words
            ),
            given=True,
        )

    def nearest(self, word: str) -> UnknownWord:
        """A word that the captioner does not know, with the nearest one that it knows.

        By meaning where WordNet is installed (the extra `spice`), otherwise by spelling.

        >>> captioner.nearest("zebra")  # doctest: +SKIP
        UnknownWord(text='zebra', nearest='horse', nearest_by='meaning')
        """
        return nearest_known(self.vocabulary, word)

    def counterfactual(
        self, picture: AnyPicture, caption: Caption, word: str, place: int | None = None
    ) -> Counterfactual:
        """A word that the caption does not say: how likely it was, and which words were likelier.

        `place` is its position (from 0; one past the last word is the end). By default it is the
        position where the word is most likely.

        >>> captioner.counterfactual("photo.jpg", caption, "cat").place  # doctest: +SKIP
        1
        """
        texts = [said.text for said in caption.words]
        require_known(self.vocabulary, [word])
        if place is None and word in texts:
            raise ConfigError(
                f"the caption does say '{word}'; to ask about another position, give it"
            )
        if place is not None and not 0 <= place <= len(texts):
            raise ConfigError(f"the caption has {len(texts)} words, and no position {place}")
        if place is not None and texts[place : place + 1] == [word]:
            raise ConfigError(f"the caption does say '{word}' there; give another position")
        said_ids = [ids_of_word(self.vocabulary, said, n) for n, said in enumerate(caption.words)]
        rows = [
            [
                *itertools.chain.from_iterable(said_ids[:before]),
                *self.vocabulary.encode_word(word, first=before == 0),
            ]
            for before in range(len(texts) + 1)
        ]
        words = [row.words[-1] for row in self._read(self.encode(picture), rows, alternatives=5)]
        everywhere = tuple(candidate.log_probability for candidate in words)
        if place is None:
            place = int(np.argmax(everywhere))
        return Counterfactual(words[place], place, everywhere)

    def _likeliest(self, picture: EncodedPicture, caption: Caption) -> dict[str, tuple[int, float]]:
        """Of each word, where the captioner found it most likely, and its log-probability there."""
        ids = [*self.ids_of(caption), END]
        with torch.no_grad():
            memory = self.model.encode(picture.regions)
            tokens = torch.tensor([[ids]], device=self.device)
            # Only where a word begins can another one stand.
            begins = [span.start for span in self.vocabulary.spans(ids[:-1])] + [len(ids) - 1]
            best = next_words(self.model, memory, tokens)[0, 0, begins].max(0)
        places, chances = best.indices.tolist(), best.values.tolist()
        return {
            word: (places[number], chances[number])
            for word, number in self.vocabulary.complete_words()
        }

    def ids_of(self, caption: Caption) -> list[int]:
        """The ids of a caption's words, or of their pieces, without start and end."""
        words = enumerate(caption.words)
        return [i for n, word in words for i in ids_of_word(self.vocabulary, word, n)]

    @functools.cached_property
    def familiarity(self) -> Familiarity | None:
        """What tells pictures that are unlike those it knows, if the checkpoint has it."""
        return None if self.checkpoint is None else load_familiarity(self.checkpoint)

    def _read(
        self, picture: EncodedPicture, rows: Sequence[Sequence[int]], alternatives: int
    ) -> list[Caption]:
        """Given words of a picture, a caption for each row, by one parallel pass."""
        tokens = pad_sequence([torch.tensor(row) for row in rows], True, PAD)[None].to(self.device)
        with torch.no_grad():
            memory = self.model.encode(picture.regions)
            log_probs = describe_words(self.model, memory, tokens, 1).log_probs.sum(-1)
        scores = log_probs / (tokens != PAD).sum(-1) ** self.options.length_power
        hypotheses = Hypotheses(tokens, log_probs, scores)
        return self._describe(hypotheses, memory, picture.regions, [picture], alternatives)[0]

    def _describe(
        self,
        hypotheses: Hypotheses,
        memory: dict[str, torch.Tensor],
        regions: Regions,
        pictures: Sequence[EncodedPicture],
        alternatives: int | None,
    ) -> list[list[Caption]]:
        images = [picture.image for picture in pictures]
        captions = describe_captions(
            self.model, self.vocabulary, hypotheses, memory, regions, images, alternatives
        )
        if self.familiarity is None:
            return captions
        return [
            [dataclasses.replace(caption, unfamiliar=unfamiliar) for caption in of_picture]
            for of_picture, unfamiliar in zip(
                captions, self.familiarity.unfamiliar(regions), strict=True
            )
        ]
