"""BERTScore: captions compared token by token in the vectors of a language model.

Zhang et al., ICLR 2020: each token is matched with the most similar token of the other caption;
precision is the mean over the candidate's tokens, recall over the reference's. As in the authors'
tool, the marks around a caption ([CLS], [SEP]) may be matched but carry no weight, and of several
references the best counts, for precision, recall and F each.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from sightline.errors import DataError, WeightsError
from sightline.metrics.corpus import check_shapes
from sightline.metrics.score import Floats, Score
from sightline.metrics.token_vectors import (
    DEFAULT_NAME,
    CaptionEncoder,
    TokenVectors,
    caption_encoder,
    default_folder,
)
from sightline.progress import progress

if TYPE_CHECKING:
    from torch import Tensor

_PICTURES_AT_ONCE = 64
_LONG_WORK = 1000  # pictures; fewer take seconds


class BertScore:
    """BERTScore fed batch by batch; `model`, `layer` and `idf` are those of `bertscore`.

    >>> _, _, f = BertScore(layer=5).add(["a dog runs"], [["a dog runs"]]).scores()
    >>> f.name, round(f.corpus, 4)
    ('BERTScore-F (all-MiniLM-L6-v2 L5)', 1.0)
    """

    def __init__(
        self, model: Path | str | None = None, layer: int | None = None, idf: bool = False
    ) -> None:
        folder = default_folder() if model is None else Path(model).resolve()
        self._encoder = caption_encoder(folder)
        last = self._encoder.layers
        if layer is not None and not 0 <= layer <= last:
            raise WeightsError(f"no layer {layer} in '{folder}': it has layers 0 to {last}")
        self._layer = last if layer is None else layer
        self._idf = idf
        name = DEFAULT_NAME if model is None else folder.name
        self._label = f"({name} L{self._layer}{' idf' if idf else ''})"
        self._candidates: list[str] = []
        self._references: list[Sequence[str]] = []

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        """Take one candidate and one or more references for each of some more pictures."""
        check_shapes(candidates, references)
        self._candidates += candidates
        self._references += references
        return self

    def scores(self) -> tuple[Score, Score, Score]:
        """Precision, recall and F; the weights of `idf` are those of all references added."""
        total = len(self._candidates)
        if not total:
            raise DataError("there is nothing to score: no candidate was given")
        weights = _idf_weights(self._encoder, self._references) if self._idf else None
        values = np.empty((total, 3))
        starts = range(0, total, _PICTURES_AT_ONCE)
        show = total >= _LONG_WORK
        for start in progress(starts, "BERTScore", total=len(starts), unit="part", show=show):
            part = slice(start, start + _PICTURES_AT_ONCE)
            batch = (self._candidates[part], self._references[part])
            values[part] = _score(self._encoder, self._layer, *batch, weights)
        precision, recall, f = (
            Score(f"BERTScore-{part} {self._label}", float(column.mean()), column)
            for part, column in zip("PRF", values.T, strict=True)
        )
        return precision, recall, f


def bertscore(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    model: Path | str | None = None,
    layer: int | None = None,
    idf: bool = False,
) -> tuple[Score, Score, Score]:
    """Precision, recall and F of BERTScore.

    `model` is a local folder that `transformers` can load, by default the one in the package of the
    `bertscore` extra; nothing is ever fetched. `layer` is the layer whose vectors are compared, by
    default the last: of the default model, tuned on sentence pairs, it agrees best with human
    judgement. (Of models that were only pre-trained, the authors found layers about three quarters
    up to be best.) With `idf`, rare tokens weigh more: one that occurs in n of the N references
    weighs log((N + 1) / (n + 1)). All of this is part of the scores' names.

    >>> precision, recall, f = bertscore(["a dog runs"], [["a dog runs", "a cat"]])
    >>> f.name, round(f.corpus, 4)
    ('BERTScore-F (all-MiniLM-L6-v2 L6)', 1.0)
    """
    return BertScore(model, layer, idf).add(candidates, references).scores()


def _idf_weights(encoder: CaptionEncoder, references: Sequence[Sequence[str]]) -> "Tensor":
    """The weight of each token id; the rarest are those in no reference."""
    import torch

    ids, _ = encoder.tokens([caption for captions in references for caption in captions])
    frequencies = Counter(token for caption in ids for token in set(caption))
    weights = torch.full((encoder.vocabulary,), math.log(len(ids) + 1), dtype=torch.float64)
    for token, count in frequencies.items():
        weights[token] = math.log((len(ids) + 1) / (count + 1))
    return weights


def _score(
    encoder: CaptionEncoder,
    layer: int,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    weights: "Tensor | None",
) -> Floats:
    """Precision, recall and F of each picture, each the best over its references."""
    import torch

    texts = list(dict.fromkeys([*candidates, *(text for group in references for text in group)]))
    row = {text: number for number, text in enumerate(texts)}
    encoded = encoder.encode(texts, layer)
    token_weights = _token_weights(encoded, weights)
    owner = [number for number, group in enumerate(references) for _ in group]
    said = torch.tensor([row[candidates[number]] for number in owner])
    meant = torch.tensor([row[text] for group in references for text in group])
    similarity = encoded.vectors[said] @ encoded.vectors[meant].transpose(1, 2)
    absent = ~(encoded.present[said][:, :, None] & encoded.present[meant][:, None, :])
    similarity.masked_fill_(absent, -1.0)
    weighed = token_weights.any(dim=1)
    both = weighed[said] & weighed[meant]  # an empty caption shares nothing with any other
    precision = _weighted_mean(similarity.amax(dim=2), token_weights[said]) * both
    recall = _weighted_mean(similarity.amax(dim=1), token_weights[meant]) * both
    total = precision + recall
    f = torch.where(total > 0, 2 * precision * recall / total, 0.0)
    best = np.full((len(candidates), 3), -np.inf)
    np.maximum.at(best, np.array(owner), torch.stack([precision, recall, f], dim=1).numpy())
    return best


def _token_weights(encoded: TokenVectors, weights: "Tensor | None") -> "Tensor":
    counted = encoded.words.double()
    return counted if weights is None else counted * weights[encoded.ids]


def _weighted_mean(values: "Tensor", weights: "Tensor") -> "Tensor":
    return (values * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1e-12)
