"""Whether a picture supports the words of its caption: a score, a verdict, and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from sightline.captions import DOUBTFUL, NOT_SUPPORTED, SEEN, Support
from sightline.errors import CheckpointError, ConfigError
from sightline.explain.targets import Targets
from sightline.files import atomic_write
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.support.agreement import agreement
from sightline.support.logistic import Floats, Logistic
from sightline.support.word_scores import MEANING, word_scores
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import PAD, START, Vocabulary

BATCH = 16  # captions that are checked at once
FILE = "support.safetensors"


@dataclass(frozen=True, eq=False)
class WordScores:
    """The content words of some captions, and the single scores of each."""

    places: list[list[int]]  # of each caption
    scores: list[dict[str, float]]  # of all words, caption by caption


@dataclass(frozen=True, eq=False)
class SupportClassifier:
    """A combination of single scores, fitted to one captioner by `support_fit`.

    It knows nothing of the word itself: only of what speaks for it.

    >>> nothing = Regions(torch.zeros(2, 1, 3), torch.ones(2, 1) > 0, torch.zeros(2, 1, 4))
    >>> one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    >>> classifier = SupportClassifier(("blank",), one, 0.8, 0.3, nothing)
    >>> classifier.classify([{"blank": 0.0}, {"blank": -2.0}])[1].verdict
    'not supported'
    """

    names: tuple[str, ...]  # of the single scores
    combination: Logistic
    seen: float  # from this score on a word counts as seen
    unsupported: float  # up to this score it counts as not supported
    reference_regions: Regions  # a blank, then other pictures

    def verdict(self, score: float) -> str:
        """What a score is called."""
        if score <= self.unsupported:
            return NOT_SUPPORTED
        return SEEN if score >= self.seen else DOUBTFUL

    def classify(self, words: Sequence[dict[str, float]]) -> list[Support]:
        """The support of words, of their single scores."""
        if not words:
            return []
        scores = self.combination.predict(table(words, self.names))
        return [
            Support(score, self.verdict(score), {name: single_scores[name] for name in self.names})
            for score, single_scores in zip(scores.tolist(), words, strict=True)
        ]

    def check(
        self,
        model: CaptionModel,
        vocabulary: Vocabulary,
        regions: Regions,
        captions: Sequence[Sequence[int]],
    ) -> list[list[Support | None]]:
        """The support of each word of one caption per picture; None for what is no content word.

        Captions are word ids without start and end.
        """
        checked: list[list[Support | None]] = [[None] * len(caption) for caption in captions]
        for first in range(0, len(captions), BATCH):
            batch = slice(first, first + BATCH)
            scored = score_words(
                model,
                vocabulary,
                regions[batch],
                captions[batch],
                self.reference_regions,
                agree="agreement" in self.names,
            )
            rest = iter(self.classify(scored.scores))
            for supports, places in zip(checked[batch], scored.places, strict=True):
                for place in places:
                    supports[place] = next(rest)
        return checked


def score_words(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    reference_regions: Regions,
    *,
    agree: bool = True,
) -> WordScores:
    """The single scores of every content word, of one caption per picture.

    Without `agree`, that which needs sampled captions is left out.
    """
    places = [
        [place for place, word in enumerate(caption) if is_content(vocabulary.words[word])]
        for caption in captions
    ]
    asked = max(map(len, places), default=0)
    if not asked:
        return WordScores(places, [])
    length = max(map(len, captions))
    tokens = torch.full((len(captions), length), PAD)
    for row, caption in zip(tokens, captions, strict=True):
        row[: len(caption)] = torch.tensor(caption)
    # Captions with fewer words ask for their first one again.
    index = torch.tensor([[*row, *[0] * (asked - len(row))] for row in places])
    tokens, index = tokens.to(regions.mask.device), index.to(regions.mask.device)
    given = torch.cat([torch.full_like(tokens[:, :1], START), tokens[:, :-1]], 1)
    words = tokens.gather(1, index)
    values = word_scores(Targets(model, regions, given[:, None], index, words), reference_regions)
    if agree:
        values["agreement"] = agreement(model, vocabulary, regions, words)
    scores = {name: rows.tolist() for name, rows in values.items()}
    return WordScores(
        places,
        [
            {name: rows[b][n] for name, rows in scores.items()}
            for b, row in enumerate(places)
            for n in range(len(row))
        ],
    )


def table(words: Sequence[dict[str, float]], names: Sequence[str]) -> Floats:
    """The named scores `(words, names)`."""
    return np.array([[scores[name] for name in names] for scores in words], np.float64)


def save_classifier(folder: Path, classifier: SupportClassifier) -> None:
    """Store it in a checkpoint folder: the reference regions as tensors, the rest as JSON."""
    combination = classifier.combination
    content = {
        "names": classifier.names,
        "mean": combination.mean.tolist(),
        "scale": combination.scale.tolist(),
        "weights": combination.weights.tolist(),
        "bias": combination.bias,
        "seen": classifier.seen,
        "unsupported": classifier.unsupported,
    }
    tensors = {
        "vectors": classifier.reference_regions.vectors.half(),
        "mask": classifier.reference_regions.mask,
        "boxes": classifier.reference_regions.boxes,
    }
    with atomic_write(folder / FILE, "wb") as file:
        file.write(save(tensors, {"support": json.dumps(content)}))


def has_classifier(folder: Path) -> bool:
    """Whether a checkpoint folder was fitted to check words."""
    return (folder / FILE).is_file()


def load_classifier(folder: Path, device: torch.device | str = "cpu") -> SupportClassifier:
    """What `save_classifier` stored."""
    path = folder / FILE
    if not has_classifier(folder):
        raise ConfigError(
            f"{folder}: not fitted to check words; run sightline fit-support on it first"
        )
    try:
        with safe_open(path, "pt") as file:
            content = json.loads((file.metadata() or {})["support"])
            vectors, mask, boxes = (file.get_tensor(n) for n in ("vectors", "mask", "boxes"))
        if unknown := set(content["names"]).difference(MEANING):
            raise ValueError(f"no score is called {unknown.pop()}")
        return SupportClassifier(
            tuple(content["names"]),
            Logistic(
                np.array(content["mean"], np.float64),
                np.array(content["scale"], np.float64),
                np.array(content["weights"], np.float64),
                float(content["bias"]),
            ),
            float(content["seen"]),
            float(content["unsupported"]),
            Regions(vectors.float(), mask, boxes).to(device),
        )
    except (OSError, SafetensorError, ValueError, LookupError, TypeError):
        raise CheckpointError(
            f"{path}: damaged, or of another version; run sightline fit-support again"
        ) from None
