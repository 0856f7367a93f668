"""The explanation of a word."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from sightline.data.dataset import Box
from sightline.display import to_html

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The evidence for a word at a position of a caption; negative values are evidence against it.

    With LRP, `total` (the word's logit) = `image_relevance` + `language_relevance` + `bias` +
    `epsilon`, and `image_relevance` = the sum of `heatmap` + `encoder`. Other methods do not
    guarantee such sums; `remainder` is the difference.

    >>> words = np.float32([0.5, 1.0])
    >>> box = (0.0, 0.0, 1.0, 1.0)
    >>> why = Explanation("lrp", "cat", 1, 5.0, np.float32([3]), (box,), ("<start>", "a"), words)
    >>> why.image_relevance, why.language_relevance, round(why.image_share, 3), why.remainder
    (3.0, 1.5, 0.667, 0.5)
    """

    method: str
    word: str  # the target; the caption may say another word at this position
    place: int  # of the word in the caption, from 0
    total: float
    regions: Floats  # (L,)
    boxes: tuple[Box, ...]  # of the regions, as fractions of the picture
    previous: tuple[str, ...]  # the previous words, <start> first
    words: Floats  # (place + 1,): of each of them
    # (H, W), with the pixels of the picture. Where the method stops at the regions, each is spread
    # over its box. None if there is no picture, but its regions alone.
    heatmap: Floats | None = field(default=None, repr=False)
    bias: float = 0.0  # absorbed by constants: biases, positions and the like
    epsilon: float = 0.0  # absorbed by ε
    encoder: float = 0.0  # what the encoder absorbed between the regions and the pixels
    picture: Image | None = field(default=None, repr=False)  # what `heatmap` is drawn over

    @property
    def image_relevance(self) -> float:
        """The relevance of the picture: the sum over its regions."""
        return float(self.regions.sum())

    @property
    def language_relevance(self) -> float:
        """The relevance of the previous words."""
        return float(self.words.sum())

    @property
    def image_share(self) -> float:
        """The picture's share of the relevance of all inputs, from 0 to 1, ignoring signs."""
        image, language = abs(self.image_relevance), abs(self.language_relevance)
        return image / max(image + language, 1e-12)

    @property
    def remainder(self) -> float:
        """The part of `total` that neither inputs nor constants nor ε account for."""
        return (
            self.total - self.image_relevance - self.language_relevance - self.bias - self.epsilon
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: relevance at the resolution of the regions, and all that adds up to `total`.

        >>> words, box = np.float32([0.5]), (0.0, 0.0, 1.0, 1.0)
        >>> why = Explanation("lrp", "a", 0, 5.0, np.float32([3]), (box,), ("<start>",), words)
        >>> why.to_json()["regions"], why.to_json()["previous"]
        ([3.0], [{'text': '<start>', 'relevance': 0.5}])
        """
        return {
            "method": self.method,
            "word": self.word,
            "place": self.place,
            "total": self.total,
            "image": self.image_relevance,
            "language": self.language_relevance,
            "image_share": self.image_share,
            "bias": self.bias,
            "epsilon": self.epsilon,
            "encoder": self.encoder,
            "remainder": self.remainder,
            "regions": self.regions.tolist(),
            "boxes": [list(box) for box in self.boxes],
            "previous": [
                {"text": text, "relevance": relevance}
                for text, relevance in zip(self.previous, self.words.tolist(), strict=True)
            ],
        }

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return to_html(self)
