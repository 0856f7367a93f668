"""Words and numbers as readers see them, in figures, notebooks and pages."""

import math
from collections.abc import Sequence

from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report.heatmaps import Heatmap

COLOURS = "Orange is evidence for the word, blue is evidence against it; stronger is denser."

MARKS = {"seen": "✓", "doubtful": "?", "not supported": "✗"}  # of verdicts on a word


def percent(probability: float) -> str:
    """A probability or a share for readers; only exactly 0 and 1 are shown as 0 % and 100 %.

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


def listed(words: Sequence[str]) -> str:
    """Words in quotation marks, as a sentence lists them.

    >>> listed(["red"]), listed(["red", "shirt", "hat"])
    ('“red”', '“red”, “shirt” and “hat”')
    """
    *others, last = (f"“{readable(word)}”" for word in words)
    return f"{', '.join(others)} and {last}" if others else last


def summary(explanation: Explanation, heatmap: Heatmap) -> str:
    """An explanation in a sentence or two, for readers who cannot see the colours.

    >>> import numpy as np
    >>> box, none = ((0.0, 0.0, 1.0, 1.0),), np.float32([0])
    >>> why = Explanation("attention", "cat", 0, 1.0, none, box, ("<start>",), none)
    >>> summary(why, Heatmap(none[None], 1.0))
    'Attention of “cat”: nothing in the picture.'
    """
    places = [
        f"{side} the word {place}"
        for side, place in (("for", heatmap.strongest(1)), ("against", heatmap.strongest(-1)))
        if place is not None
    ]
    said = f"{find_method(explanation.method).label} of “{readable(explanation.word)}”: "
    said += f"strongest {', '.join(places)}." if places else "nothing in the picture."
    if find_method(explanation.method).adds_up and explanation.words.any():
        share = explanation.image_share
        said += f" Overall, {percent(share)} of the relevance is in the picture, "
        said += f"{percent(1 - share)} in the previous words."
    return said
