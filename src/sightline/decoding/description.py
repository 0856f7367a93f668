"""From word ids to captions: each word with its probability, its alternatives and its attention."""

import math
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
    alternatives: int | None = 5,
) -> list[list[Caption]]:
    """The captions of each picture, in the order of the hypotheses.

    Their words are described by one parallel pass. Where `alternatives` is None there is none:
    words then have the log-probabilities that the search kept, and nothing else.
    """
    if alternatives is None:
        return _undescribed(vocabulary, hypotheses, pictures)
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
                Caption(
                    vocabulary.decode(tokens[b][n]),
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


def _undescribed(
    vocabulary: Vocabulary, hypotheses: Hypotheses, pictures: Sequence[Image]
) -> list[list[Caption]]:
    """Captions of what a search kept alone: they have no attention, and so no boxes."""
    assert hypotheses.word_log_probs is not None
    of_pictures: list[list[Caption]] = [[] for _ in pictures]
    columns = (hypotheses.tokens, hypotheses.word_log_probs, hypotheses.log_probs)
    parts = (column.tolist() for column in (*columns, hypotheses.scores))
    for captions, picture, *rows in zip(of_pictures, pictures, *parts, strict=True):
        for tokens, of_words, log_prob, score in zip(*rows, strict=True):
            if not math.isfinite(score):  # fewer captions are possible than were asked for
                continue
            ids = [token for token in tokens if token not in (END, PAD)]
            words = tuple(
                Word(text, sum(of_words[start:stop]), (), (), ids=tuple(ids[start:stop]))
                for text, start, stop in vocabulary.spans(ids)
            )
            text = vocabulary.decode(tokens)
            captions.append(Caption(text, words, log_prob, score, (), picture))
    return of_pictures


def _words(
    vocabulary: Vocabulary,
    details: WordDetails,
    tokens: Sequence[int],
    row: tuple[int, int],
    visible: torch.Tensor,
) -> tuple[Word, ...]:
    """The words of one caption: `row` is its picture and its number.

    A word of several pieces is as likely as all of them together. It looked where they did on
    average, and its alternatives are those of its first piece.
    """
    ids = [token for token in tokens if token not in (END, PAD)]
    alternatives, log_probs = details.alternatives[row], details.alternative_log_probs[row]
    return tuple(
        Word(
            text=text,
            log_probability=float(details.log_probs[row][start:stop].sum()),
            alternatives=tuple(
                (vocabulary.words[alternative], log_prob)
                for alternative, log_prob in zip(
                    alternatives[start].tolist(), log_probs[start].tolist(), strict=True
                )
                if alternative != ids[start]
            ),
            attention=tuple(details.attention[row][start:stop].mean(0)[visible].tolist()),
            signals={
                name: float(signal[row][start:stop].mean())
                for name, signal in details.signals.items()
            },
            ids=tuple(ids[start:stop]),
        )
        for text, start, stop in vocabulary.spans(ids)
    )
