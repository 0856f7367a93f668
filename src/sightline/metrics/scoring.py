"""Run many metrics by name over the same captions."""

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path

from sightline import extras
from sightline.errors import DataError
from sightline.metrics.bertscore import bertscore
from sightline.metrics.bleu import Bleu
from sightline.metrics.chair import chair
from sightline.metrics.cider import Cider, CiderD
from sightline.metrics.clipscore import clipscore
from sightline.metrics.corpus import Corpus
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.meteor.scorer import meteor
from sightline.metrics.rouge import RougeL
from sightline.metrics.score import Metric, Score
from sightline.metrics.spice.official import spice, spice_command
from sightline.metrics.spice.spacy_parser import spice_spacy
from sightline.pictures import Picture

# Those that share one count of words and n-grams.
_COUNTING = {
    "bleu": Bleu().of,
    "bleu-no-bp": Bleu(brevity_penalty=False).of,
    "rouge-l": RougeL().of,
    "cider-d": CiderD.of,
    "cider": Cider.of,
}
# Those that read the captions in their own way.
_READING: dict[str, Metric] = {
    "meteor": meteor,
    "spice": spice,
    "spice-spacy": spice_spacy,
    "bertscore": bertscore,
    "chair": chair,
}

# Those that look at the pictures, with weights that the user names.
_SEEING = {"clipscore": "CLIPScore", "pac-s": "PAC-S"}

# The optional part that a metric needs, if any.
_EXTRAS = {"meteor": "meteor", "spice-spacy": "spice", "bertscore": "bertscore"}

METRICS = (*_COUNTING, *_READING, *_SEEING)
REFERENCE_FREE = tuple(_SEEING)
DEFAULT = ("bleu", "rouge-l", "cider-d", "cider")


def score(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = DEFAULT,
    frequencies: DocumentFrequencies | None = None,
    annotated: Sequence[Collection[str]] | None = None,
    *,
    pictures: Sequence[Picture] | None = None,
    clip: Path | str | None = None,
) -> dict[str, Score]:
    """Score captions by each named metric, one of `METRICS`; the scores by their names.

    This is `sightline.score`. `references[i]` are the reference captions of the picture that
    `candidates[i]` describes. Every score has a `corpus` value and the values `per_image`. With
    `frequencies` CIDEr and CIDEr-D weigh n-grams by a saved corpus. `annotated` gives CHAIR the
    COCO categories known to be in each picture, beside those its references name. CLIPScore and
    PAC-S need the `pictures`, and `clip`, the folder of a CLIP model.

    >>> import sightline
    >>> captions, references = ["a dog runs", "a cat"], [["a dog runs"], ["a cat sits", "the cat"]]
    >>> scores = sightline.score(captions, references, ["bleu", "rouge-l"])
    >>> list(scores)
    ['BLEU-1', 'BLEU-2', 'BLEU-3', 'BLEU-4', 'ROUGE-L']
    >>> scores["ROUGE-L"].per_image.round(2).tolist()
    [1.0, 0.77]
    """
    names = check_metrics(metrics)
    corpus = Corpus(frequencies=frequencies)
    if any(name in _COUNTING for name in names):
        corpus.add(candidates, references)
    scores: list[Score] = []
    for name in names:
        if name in _COUNTING:
            result = _COUNTING[name](corpus)
        elif name == "chair":
            result = chair(candidates, references, annotated=annotated)
        elif name in _SEEING:
            if pictures is None or clip is None:
                raise DataError(f"{name} needs the pictures, and the folder of a CLIP model")
            result = clipscore(candidates, references, pictures, clip, name=_SEEING[name])
        else:
            result = _READING[name](candidates, references)
        scores += result if isinstance(result, tuple) else (result,)
    return {result.name: result for result in scores}


def check_metrics(names: Sequence[str]) -> list[str]:
    """The metrics by their plain names; an error for one that is unknown or not installed.

    Call it before work whose result is to be scored.

    >>> check_metrics(["BLEU", "rouge_l"])
    ['bleu', 'rouge-l']
    """
    plain = [_known(name) for name in names]
    for name in plain:
        if name in _EXTRAS:
            extras.require(_EXTRAS[name], name)
        if name == "spice":
            spice_command()
    return plain


def installed_metrics(names: Sequence[str]) -> list[str]:
    """Those of the metrics whose optional parts are installed.

    >>> installed_metrics(["bleu", "meteor"])
    ['bleu', 'meteor']
    """
    return [name for name in names if name not in _EXTRAS or extras.is_installed(_EXTRAS[name])]


def _known(name: str) -> str:
    plain = name.strip().lower().replace("_", "-")
    if plain in METRICS:
        return plain
    near = difflib.get_close_matches(plain, METRICS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(METRICS)}"
    raise DataError(f"unknown metric '{name.strip()}': {hint}")
