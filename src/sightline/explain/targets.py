"""The targets of an explanation: which words, at which places of which captions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from sightline.encoders.encoder import Encoder
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.text.vocabulary import Vocabulary

Target = int | str | tuple[int, str]
"""A place (from 0), a word that the caption says, or a place and any word for it."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Words at places of given captions, one caption for each of B pictures, N words in each.

    `tokens` begins with the start word; place t asks for the word after `tokens[:, :, t]`, which
    may be any word, said there or not. With `encoder` and its input `x`, explanations go on to the
    pixels.

    Word n of all pictures is explained in one pass: a batch of N gradients, not of N pictures.
    """

    model: CaptionModel
    regions: Regions
    tokens: Tensor  # (B, 1, T)
    places: Tensor  # (B, N)
    words: Tensor  # (B, N)
    encoder: Encoder | None = None
    x: Tensor | None = None  # (B, 3, h, w), as `Encoder.normalise` gives it

    def chosen(self, logits: Tensor) -> Tensor:
        """The logits `(B, N)` of the target words, of `(B, 1, T, V)`."""
        pictures = torch.arange(len(logits), device=logits.device)[:, None]
        return logits[pictures, 0, self.places, self.words]


class WordTarget(NamedTuple):
    """A word to be explained: said at its place in the caption, or not."""

    place: int  # among the caption's words
    text: str
    start: int  # among the caption's ids: where its first piece stands
    ids: tuple[int, ...]  # one, or those of its pieces


def find_targets(
    words: str | Sequence[Target], caption: Sequence[int], vocabulary: Vocabulary
) -> list[WordTarget]:
    """Words of a caption, named in any of the ways a person would.

    `"all"` is every word. In a list, a number is a place, counted from 0; a word is where the
    caption first says it; a place with a word asks why that word is not (or is) there.

    >>> vocabulary = Vocabulary(["a", "cat", "dog"])
    >>> [(target.place, target.ids) for target in find_targets("all", [4, 5], vocabulary)]
    [(0, (4,)), (1, (5,))]
    >>> asked = find_targets([0, "cat", (1, "dog")], [4, 5], vocabulary)
    >>> [(target.place, target.text) for target in asked]
    [(0, 'a'), (1, 'cat'), (1, 'dog')]
    """
    said = [
        WordTarget(place, text, start, tuple(caption[start:stop]))
        for place, (text, start, stop) in enumerate(vocabulary.spans(caption))
    ]
    if isinstance(words, str):
        if words != "all":
            raise ConfigError(f"explain: words must be 'all' or a list, not '{words}'")
        return said
    return [_find_target(target, said, len(caption), vocabulary) for target in words]


def _find_target(
    target: Target, said: Sequence[WordTarget], length: int, vocabulary: Vocabulary
) -> WordTarget:
    if isinstance(target, str):
        _require_known(target, vocabulary)
        for word in said:
            if word.text == target:
                return word
        raise ConfigError(
            f"explain: the caption does not say '{target}'; to ask why not, give a position too"
        )
    place, text = target if isinstance(target, tuple) else (target, None)
    # One past the last word is a place as well: there the caption ends, and another may not have.
    if not 0 <= place <= len(said) - (text is None):
        raise ConfigError(f"explain: the caption has {len(said)} words, and no position {place}")
    if text is None or (place < len(said) and said[place].text == text):
        return said[place]
    _require_known(text, vocabulary)
    start = said[place].start if place < len(said) else length
    return WordTarget(place, text, start, tuple(vocabulary.encode_word(text, first=place == 0)))


def _require_known(word: str, vocabulary: Vocabulary) -> None:
    if word not in vocabulary:
        raise ConfigError(f"explain: the captioner does not know the word '{word}'")
