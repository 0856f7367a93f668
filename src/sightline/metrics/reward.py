"""CIDEr-D as a training reward: references prepared once, sampled captions scored in batches."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sightline.errors import DataError
from sightline.metrics.cider import Consensus
from sightline.metrics.corpus import References
from sightline.metrics.ngrams import Captions, Ints, Numbering
from sightline.metrics.score import Floats

_LARGEST_ID = 2**31 - 1


class CiderReward:
    """CIDEr-D of captions given as word ids, against references given as word ids.

    `references[i]` are the references of picture i. A caption ends before its first `end`. With
    `count_end` the end itself is a word of candidates that have one and of every reference, as
    self-critical training needs: otherwise a caption gains by never ending, or by ending in "a".
    Document frequencies are those of the references given.

    >>> reward = CiderReward([[[5, 6, 7, 8]], [[5, 9, 9, 4]]], end=0)
    >>> reward.score_ids([[5, 6, 7, 8, 0, 0], [5, 6, 7, 0, 0, 0]], [0, 1]).round(3).tolist()
    [10.0, 0.0]
    """

    def __init__(
        self,
        references: Sequence[Sequence[Sequence[int]]],
        end: int | None = None,
        count_end: bool = True,
    ) -> None:
        if not references or not all(references):
            raise DataError("a reward needs at least one picture, and a reference for each")
        self.end = end
        self.count_end = count_end and end is not None
        captions = [list(caption) for image in references for caption in image]
        if end is not None:
            captions = [_cut(caption, end) + [end] * self.count_end for caption in captions]
        per_image = np.array([len(image) for image in references], np.int64)
        self._references = References(_checked(Captions.of(captions)), per_image, Numbering())
        frequencies = self._references.document_frequencies()
        self._consensus = Consensus(self._references, frequencies, len(references))

    def score_ids(self, captions: ArrayLike, image: ArrayLike) -> Floats:
        """CIDEr-D of each row of a `(batch, steps)` array of ids against picture `image[row]`.

        Ids that no reference has are words like any other; they match nothing.
        """
        rows = np.asarray(captions, np.int64)
        indices = np.asarray(image, np.int64)
        if rows.ndim != 2 or indices.shape != rows.shape[:1]:
            raise DataError(
                f"captions of shape {rows.shape} with pictures of shape {indices.shape}: "
                "give (batch, steps) ids and one picture per row"
            )
        pictures = len(self._references.per_image)
        if indices.size and not (indices.min() >= 0 and indices.max() < pictures):
            raise DataError(f"a picture index is outside 0..{pictures - 1}")
        candidates = _checked(self._words(rows))
        overlaps = self._references.overlap(candidates, indices)
        return self._consensus.score(overlaps, candidates.lengths, robust=True)

    def _words(self, rows: Ints) -> Captions:
        """The rows up to their ends."""
        batch, steps = rows.shape
        lengths = np.full(batch, steps)
        if self.end is not None:
            ends = rows == self.end
            lengths = np.where(ends.any(axis=1), ends.argmax(axis=1) + self.count_end, steps)
        return Captions(rows[np.arange(steps) < lengths[:, None]], lengths)


def _cut(caption: list[int], end: int) -> list[int]:
    return caption[: caption.index(end)] if end in caption else caption


def _checked(captions: Captions) -> Captions:
    if captions.ids.size and not (captions.ids.min() >= 0 and captions.ids.max() <= _LARGEST_ID):
        raise DataError("word ids must be from 0 to 2,147,483,647; pad captions with the end id")
    return captions
