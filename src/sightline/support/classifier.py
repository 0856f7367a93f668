"""Whether a picture supports the words of its caption: a score, a verdict, and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sightline.captions import Support
from sightline.errors import CheckpointError, ConfigError
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel
from sightline.parsing import parse_json
from sightline.regions import Regions
from sightline.support.agreement import agreement
from sightline.support.foreign import MEANING as FOREIGN_MEANING
from sightline.support.foreign import ForeignClassifier
from sightline.support.sealed import load_sealed, save_sealed
from sightline.support.word_classifier import WordClassifier, weights_from_json
from sightline.support.word_detector import WordDetector
from sightline.support.word_scores import MEANING, word_scores
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import PAD, START, Vocabulary

BATCH = 16  # captions that are checked at once
FILE = "support.safetensors"


@dataclass(frozen=True, eq=False)
class WordScores:
    """The content words of some captions, and the single scores of each."""

    places: list[list[int]]  # of each caption, among its words
    texts: list[list[str]]
    scores: list[dict[str, float]]  # of all words, caption by caption


@dataclass(frozen=True, eq=False)
class SupportClassifier(WordClassifier):
    """The judge of a captioner's own words, fitted to it by `support.fit`.

    Of the word itself it knows how common it is, if there is a detector; the rest is evidence.
    `foreign` judges captions that others wrote; checkpoints of earlier versions have none.

    >>> from sightline.support.logistic import Logistic
    >>> nothing = Regions(torch.zeros(2, 1, 3), torch.ones(2, 1) > 0, torch.zeros(2, 1, 4))
    >>> import numpy as np
    >>> one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    >>> classifier = SupportClassifier(("blank",), one, 0.8, 0.3, nothing)
    >>> classifier.classify([{"blank": 0.0}, {"blank": -2.0}])[1].verdict
    'not supported'
    """

    reference_regions: Regions  # a blank, then other pictures
    detector: WordDetector | None = None
    unsure: float = float("-inf")  # mean log-odds of a caption's words, of which little was found
    foreign: ForeignClassifier | None = None

    def finds_little(self, regions: Regions, captions: Sequence[Sequence[str]]) -> list[bool]:
        """Whether the detector finds little of what the caption of each picture says."""
        if self.detector is None:
            return [False] * len(captions)
        said = [[word for word in caption if is_content(word)] for caption in captions]
        rows = self.detector.scores(regions, said)
        return [bool(row) and mean_log_odds(row) < self.unsure for row in rows]

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
        checked: list[list[Support | None]] = [
            [None] * len(vocabulary.spans(caption)) for caption in captions
        ]
        for first in range(0, len(captions), BATCH):
            batch = slice(first, first + BATCH)
            scored = score_words(
                model,
                vocabulary,
                regions[batch],
                captions[batch],
                self.reference_regions,
                self.detector,
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
    detector: WordDetector | None = None,
    *,
    agree: bool = True,
) -> WordScores:
    """The single scores of every content word, of one caption per picture.

    Without `agree`, that which needs sampled captions is left out; without a `detector`, what it
    says.
    """
    words = [
        [(place, span) for place, span in enumerate(vocabulary.spans(ids)) if is_content(span.text)]
        for ids in captions
    ]
    places = [[place for place, _ in row] for row in words]
    texts = [[span.text for _, span in row] for row in words]
    # The pieces of each word, and the number of its word among those of the caption.
    pieces = [
        [(piece, n) for n, (_, span) in enumerate(row) for piece in range(span.start, span.stop)]
        for row in words
    ]
    asked = max(map(len, pieces), default=0)
    if not asked:
        return WordScores(places, texts, [])
    length = max(map(len, captions))
    tokens = torch.full((len(captions), length), PAD)
    for row, caption in zip(tokens, captions, strict=True):
        row[: len(caption)] = torch.tensor(caption)
    # Captions with fewer words ask for their first one again, for a word that nobody reads.
    spare = max(map(len, words))
    filled = [[*row, *[(0, spare)] * (asked - len(row))] for row in pieces]
    index, owners = torch.tensor(filled, device=regions.mask.device).unbind(-1)
    tokens = tokens.to(regions.mask.device)
    given = torch.cat([torch.full_like(tokens[:, :1], START), tokens[:, :-1]], 1)
    targets = Targets(model, regions, given[:, None], index, tokens.gather(1, index))
    scores = {
        name: rows.tolist()
        for name, rows in word_scores(targets, reference_regions, owners).items()
    }
    if agree:
        scores["agreement"] = agreement(model, vocabulary, regions, texts)
    if detector is not None:
        detected = detector.scores(regions, texts)
        scores["detected"] = [[evidence for evidence, _ in row] for row in detected]
        scores["frequency"] = [[prior for _, prior in row] for row in detected]
    return WordScores(
        places,
        texts,
        [
            {name: rows[b][n] for name, rows in scores.items()}
            for b, row in enumerate(places)
            for n in range(len(row))
        ],
    )


def mean_log_odds(words: Sequence[tuple[float, float]]) -> float:
    """Of words with their evidence and prior, the mean of what both add up to."""
    return float(np.mean([evidence + prior for evidence, prior in words]))


def save_classifier(folder: Path, classifier: SupportClassifier) -> None:
    """Store it in a checkpoint folder: the reference regions as tensors, the rest as JSON."""
    content: dict[str, Any] = classifier.weights_to_json()
    tensors = {
        "vectors": classifier.reference_regions.vectors.half(),
        "mask": classifier.reference_regions.mask,
        "boxes": classifier.reference_regions.boxes,
    }
    if classifier.detector is not None:
        detector, content["stems"] = classifier.detector.pack()
        content["unsure"] = classifier.unsure
        tensors |= detector
    if classifier.foreign is not None:
        calibration = classifier.foreign.calibration
        content["foreign"] = {**classifier.foreign.weights_to_json(), "calibration": calibration}
        tensors["mentions"] = classifier.foreign.prior
    save_sealed(folder / FILE, tensors, {"support": json.dumps(content)})


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
    tensors, metadata = load_sealed(path)
    content = parse_json(metadata.get("support", ""), str(path), CheckpointError, allow_nan=True)
    try:
        stems = content.get("stems")
        detector = WordDetector.unpack(stems, tensors).to(device) if stems else None
        foreign = None
        if "foreign" in content:
            foreign = ForeignClassifier(
                *weights_from_json(content["foreign"], list(FOREIGN_MEANING)),
                tensors["mentions"].float().to(device),
                tuple(content["foreign"]["calibration"]),
            )
        names = {*content["names"], *(foreign.names if foreign else ())}
        if detector is None and "detected" in names:
            raise ValueError("there is no detector")
        return SupportClassifier(
            *weights_from_json(content, list(MEANING)),
            _reference_regions(tensors).to(device),
            detector,
            float(content.get("unsure", "-inf")),
            foreign,
        )
    # The parts say what is wrong with them by these.
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CheckpointError(
            f"{path}: damaged, or of another version; run sightline fit-support again"
        ) from None


def _reference_regions(tensors: dict[str, torch.Tensor]) -> Regions:
    """The reference regions in a file; a `ValueError` if their parts do not fit together."""
    vectors, mask, boxes = (tensors[name] for name in ("vectors", "mask", "boxes"))
    is_whole = vectors.ndim == 3 and mask.dtype == torch.bool and mask.shape == vectors.shape[:2]
    if not is_whole or boxes.shape != (*mask.shape, 4):
        raise ValueError("the reference regions do not fit together")
    return Regions(vectors.float(), mask, boxes)
