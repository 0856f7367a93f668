"""What explanations are called and say, in words that need no paper."""

import math
from typing import NamedTuple

from sightline.explain.explanation import Explanation
from sightline.report.heatmaps import Heatmap


class Method(NamedTuple):
    """A way to explain a word."""

    label: str
    sentence: str


METHODS = {
    "lrp": Method(
        "LRP",
        "Layer-wise relevance propagation hands the word's score back through the captioner, step "
        "by step, to regions of the picture and to the words before: these parts add up to the "
        "score. From the regions it goes on to their pixels, which show where.",
    ),
    "grad_cam": Method(
        "Grad-CAM",
        "Grad-CAM weighs what each region holds by how much the word's score changes with it.",
    ),
    "guided_grad_cam": Method(
        "Guided Grad-CAM",
        "Guided Grad-CAM shows which pixels the word's score changes with, where Grad-CAM finds "
        "evidence for the word.",
    ),
    "attention": Method(
        "Attention",
        "Attention is where the captioner looked for the word, whatever came of it. It has no "
        "evidence against a word, and says nothing of the words before.",
    ),
    "gradient_input": Method(
        "Gradient x input",
        "Gradient x input multiplies each pixel by how much the word's score changes with it.",
    ),
    "guided_backpropagation": Method(
        "Guided backpropagation",
        "Guided backpropagation shows which pixels the word's score changes with, along paths "
        "through the encoder that raise it.",
    ),
    "occlusion": Method(
        "Occlusion",
        "Occlusion hides one part of the picture, or one word before, at a time; shown is how much "
        "the word's score falls.",
    ),
}

COLOURS = "Orange speaks for the word, blue against it; the stronger, the denser."

MARKS = {"seen": "✓", "doubtful": "?", "not supported": "✗"}  # of verdicts on a word


def percent(probability: float) -> str:
    """A probability or a share as people read it; only what is none at all, or all, says so.

    >>> percent(0.417), percent(0.0042), percent(0.998), percent(1)
    ('42 %', '0.4 %', '99.8 %', '100 %')
    >>> percent(0.00001), percent(0.99999)
    ('less than 0.1 %', 'more than 99.9 %')
    """
    if 0 < probability < 0.0005:
        return "less than 0.1 %"
    if 0.9995 < probability < 1:
        return "more than 99.9 %"
    nearly = 0 < probability < 0.0095 or 0.9905 < probability < 1
    return f"{100 * probability:.{int(nearly)}f} %"


def likelihood(log_probability: float) -> str:
    """The same of a log-probability.

    >>> likelihood(math.log(0.25))
    '25 %'
    """
    return percent(math.exp(log_probability))


def readable(word: str) -> str:
    """A word of the vocabulary as a reader knows it.

    >>> readable("cat"), readable("<start>"), readable("<end>")
    ('cat', '(start)', '(end)')
    """
    return f"({word[1:-1]})" if word in ("<start>", "<end>", "<unknown>") else word


def summary(explanation: Explanation, found: Heatmap) -> str:
    """An explanation in a sentence or two, for whoever does not see the colours.

    >>> import numpy as np
    >>> box, none = ((0.0, 0.0, 1.0, 1.0),), np.float32([0])
    >>> why = Explanation("attention", "cat", 0, 1.0, none, box, ("<start>",), none)
    >>> summary(why, Heatmap(none[None], 1.0))
    'Attention of “cat”: nothing in the picture.'
    """
    places = [
        f"{what} the word {place}"
        for what, place in (("for", found.strongest(1)), ("against", found.strongest(-1)))
        if place is not None
    ]
    said = f"{METHODS[explanation.method].label} of “{readable(explanation.word)}”: "
    said += f"strongest {', '.join(places)}." if places else "nothing in the picture."
    if explanation.words.any():
        share = explanation.image_share
        said += f" Taken together, the picture has {percent(share)} of the relevance, "
        said += f"the words before {percent(1 - share)}."
    return said
