"""A tiny captioner with decided opinions, and every caption it could give."""

import itertools
from collections.abc import Callable, Iterator

import pytest
import torch

from sightline.decoding.constraints import Constraints
from sightline.decoding.words import describe_words
from sightline.models.interface import CaptionModel, Memory
from sightline.models.registry import create_model
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, START

WORDS = (4, 5, 6, 7)
REGION_DIM = 3


class Tiny:
    """A model of a few words, some pictures, and slow answers to what decoding should find."""

    def __init__(self, seed: int, pictures: int, end_bias: float) -> None:
        torch.manual_seed(seed)
        widths = ("region_width", "word_width", "state_width", "attention_width")
        self.model: CaptionModel = create_model(
            "soft_attention", len(WORDS) + 4, REGION_DIM, dict.fromkeys(widths, 8)
        ).eval()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(3)
            self.model.get_parameter("output.bias")[END] += end_bias
        self.regions = Regions(
            torch.randn(pictures, 5, REGION_DIM),
            torch.ones(pictures, 5, dtype=torch.bool),
            torch.zeros(pictures, 5, 4),
        )
        with torch.no_grad():
            self.memory: Memory = self.model.encode(self.regions)

    def picture(self, i: int) -> Memory:
        return {name: tensor[i : i + 1] for name, tensor in self.memory.items()}

    def log_probs(self, memory: Memory, captions: list[tuple[int, ...]]) -> torch.Tensor:
        """Of captions of one picture, end included, by forced decoding."""
        longest = max(map(len, captions))
        padded = [(*caption, *[PAD] * (longest - len(caption))) for caption in captions]
        return describe_words(self.model, memory, torch.tensor([padded])).log_probs.sum(-1)[0]

    def next_word(self, memory: Memory, words: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad():
            unrolled = self.model.unroll(torch.tensor([[[START, *words]]]), memory)
        return unrolled.logits[0, 0, -1].log_softmax(-1)


def all_captions(limits: Constraints) -> list[tuple[int, ...]]:
    """Every caption that the limits allow, the end word included."""
    return [
        (*words, END)
        for length in range(limits.min_length, limits.max_length + 1)
        for words in itertools.product(WORDS, repeat=length)
        if set(limits.require) <= set(words) and all(is_allowed(words, limits))
    ]


def is_allowed(words: tuple[int, ...], limits: Constraints) -> Iterator[bool]:
    """Of each word: may it stand where it does?"""
    for t in range(len(words)):
        yield words[t] in allowed_words(words[:t], limits)


def allowed_words(words: tuple[int, ...], limits: Constraints) -> list[int]:
    """What may follow `words`; a plain rereading of what `Constraints` promises."""
    if len(words) >= limits.max_length:
        return [END]
    n = limits.no_repeat_ngram
    seen = {words[i : i + n] for i in range(len(words) - n + 1)} if n else set()
    allowed = [
        word
        for word in WORDS
        if word not in limits.avoid
        and not (n and len(words) >= n - 1 and (*words[len(words) - n + 1 :], word) in seen)
    ]
    return [END, *allowed] if len(words) >= limits.min_length else allowed


@pytest.fixture
def tiny() -> Callable[..., Tiny]:
    def create(seed: int = 0, pictures: int = 1, end_bias: float = 0.0) -> Tiny:
        return Tiny(seed, pictures, end_bias)

    return create


@pytest.fixture
def captions_of() -> Callable[[Constraints], list[tuple[int, ...]]]:
    return all_captions


@pytest.fixture
def allowed() -> Callable[[tuple[int, ...], Constraints], list[int]]:
    return allowed_words


@pytest.fixture
def texts() -> Callable[[torch.Tensor], list[tuple[int, ...]]]:
    """The captions of one picture without their padding."""

    def strip(tokens: torch.Tensor) -> list[tuple[int, ...]]:
        return [tuple(word for word in row if word != PAD) for row in tokens.tolist()]

    return strip
