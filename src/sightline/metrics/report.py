"""Run many metrics by name over the same captions."""

import difflib
import importlib
from collections.abc import Sequence

from sightline.errors import DataError
from sightline.metrics.bleu import Bleu
from sightline.metrics.cider import Cider, CiderD
from sightline.metrics.corpus import Corpus
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.rouge import RougeL
from sightline.metrics.score import Metric, Score

# Those that share one count of words and n-grams.
_COUNTING = {
    "bleu": Bleu().of,
    "bleu-no-bp": Bleu(brevity_penalty=False).of,
    "rouge-l": RougeL().of,
    "cider-d": CiderD.of,
    "cider": Cider.of,
}
# Those that read the captions in their own way: module and function, imported when asked for.
_READING = {
    "meteor": ("sightline.metrics.meteor", "meteor"),
    "spice": ("sightline.metrics.spice", "spice"),
    "spice-spacy": ("sightline.metrics.spice_spacy", "spice_spacy"),
    "bertscore": ("sightline.metrics.bertscore", "bertscore"),
}

METRICS = (*_COUNTING, *_READING)
DEFAULT = ("bleu", "rouge-l", "cider-d", "cider")


def measure(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = DEFAULT,
    frequencies: DocumentFrequencies | None = None,
) -> tuple[Score, ...]:
    """Score raw captions by each named metric, one of `METRICS`.

    With `frequencies` CIDEr and CIDEr-D weigh n-grams by a saved corpus.

    >>> scores = measure(["a dog runs"], [["a dog runs", "the dog is running"]], ["rouge-l"])
    >>> scores[0].name, scores[0].corpus
    ('ROUGE-L', 1.0)
    """
    names = [_known(name) for name in metrics]
    corpus = Corpus(frequencies=frequencies)
    if any(name in _COUNTING for name in names):
        corpus.add(candidates, references)
    scores: list[Score] = []
    for name in names:
        if name in _COUNTING:
            result = _COUNTING[name](corpus)
        else:
            module, function = _READING[name]
            metric: Metric = getattr(importlib.import_module(module), function)
            result = metric(candidates, references)
        scores += result if isinstance(result, tuple) else (result,)
    return tuple(scores)


def _known(name: str) -> str:
    plain = name.strip().lower().replace("_", "-")
    if plain in METRICS:
        return plain
    near = difflib.get_close_matches(plain, METRICS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(METRICS)}"
    raise DataError(f"unknown metric '{name.strip()}': {hint}")
