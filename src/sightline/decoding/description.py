"""From word ids to captions: each word with its probability, its alternatives and its attention."""

from collections.abc import Sequence

import torch
from PIL.Image import Image

from sightline.captions import Caption, Word
from sightline.decoding.hypotheses import Hypotheses
from sightline.decoding.words import WordDetails, describe_words
from sightline.models.interface import CaptionModel, Memory
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, Vocabulary


@torch.no_grad()
def describe_captions(
    model: CaptionModel,
    vocabulary: Vocabulary,
    hypotheses: Hypotheses,
    memory: Memory,
    regions: Regions,
    pictures: Sequence[Image],
    alternatives: int = 5,
) -> list[list[Caption]]:
    """The captions of each picture, in the order of the hypotheses, by one parallel pass."""
    details = describe_words(model, memory, hypotheses.tokens, alternatives).cpu()
    tokens = hypotheses.tokens.tolist()
    captions = []
    for b, picture in enumerate(pictures):
        visible = regions.mask[b].cpu()
        boxes = tuple(tuple(box) for box in regions.boxes[b].cpu()[visible].tolist())
        # Where fewer captions are possible than were asked for, the rest score -inf.
        count = int(hypotheses.scores[b].isfinite().sum())
        captions.append(
            [
                _caption(
                    _words(vocabulary, details, tokens[b][n], (b, n), visible),
                    float(hypotheses.log_probs[b, n]),
                    float(hypotheses.scores[b, n]),
                    boxes,
                    picture,
                )
                for n in range(count)
            ]
        )
    return captions


def _caption(
    words: tuple[Word, ...],
    log_probability: float,
    score: float,
    boxes: tuple[tuple[float, float, float, float], ...],
    picture: Image,
) -> Caption:
    text = " ".join(word.text for word in words)
    return Caption(text, words, log_probability, score, boxes, picture)


def _words(
    vocabulary: Vocabulary,
    details: WordDetails,
    tokens: Sequence[int],
    row: tuple[int, int],
    visible: torch.Tensor,
) -> tuple[Word, ...]:
    """The words of one caption: `row` is its picture and its number."""
    alternatives = details.alternatives[row].tolist()
    log_probs = details.alternative_log_probs[row].tolist()
    return tuple(
        Word(
            text=vocabulary.words[token],
            log_probability=float(details.log_probs[row][t]),
            alternatives=tuple(
                (vocabulary.words[alternative], log_prob)
                for alternative, log_prob in zip(alternatives[t], log_probs[t], strict=True)
                if alternative != token
            ),
            attention=tuple(details.attention[row][t][visible].tolist()),
            signals={name: float(signal[row][t]) for name, signal in details.signals.items()},
        )
        for t, token in enumerate(tokens)
        if token not in (END, PAD)
    )
