"""CHAIR: how much of what a caption names is not in the picture.

Rohrbach et al., EMNLP 2018, section 3: of the objects that captions mention, CHAIRi is the share
that is hallucinated; CHAIRs is the share of captions with at least one of these. What is in a
picture is what its annotated categories and its reference captions together say. Lower is better.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sightline.errors import DataError
from sightline.metrics.coco_objects import CATEGORIES, mentions
from sightline.metrics.corpus import check_shapes
from sightline.metrics.score import Floats, Score


@dataclass(frozen=True)
class ObjectsNamed:
    """The words of one caption that name objects, and those among them that nothing supports."""

    mentioned: tuple[str, ...]
    hallucinated: tuple[str, ...]


class Chair:
    """CHAIR fed batch by batch; `pictures` holds the words of each picture.

    >>> metric = Chair().add(["a dog and a cat"], [["a dog"]])
    >>> metric.pictures[0].hallucinated
    ('cat',)
    """

    def __init__(self) -> None:
        self.pictures: list[ObjectsNamed] = []

    def add(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        annotated: Sequence[Collection[str]] | None = None,
    ) -> Self:
        """Take one candidate and one or more references for each of some more pictures."""
        self.pictures += objects_named(candidates, references, annotated=annotated)
        return self

    def scores(self) -> tuple[Score, Score]:
        """CHAIRi and CHAIRs."""
        if not self.pictures:
            raise DataError("there is nothing to score: no candidate was given")
        counts = np.array([(len(p.hallucinated), len(p.mentioned)) for p in self.pictures], float)
        wrong = (counts[:, 0] > 0).astype(np.float64)
        return (
            Score("CHAIRi", float(_share(counts.sum(axis=0))), _share(counts), counts, _share),
            Score("CHAIRs", float(wrong.mean()), wrong),
        )


def chair(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    annotated: Sequence[Collection[str]] | None = None,
) -> tuple[Score, Score]:
    """CHAIRi and CHAIRs, over the 80 categories of COCO.

    `annotated` gives for each picture the names of the categories that have a box or mask in it.
    Without it only the references say what is there, which misses what people leave out.

    >>> instances, sentences = chair(["a dog and a cat"], [["a dog"]])
    >>> instances.name, instances.corpus, sentences.corpus
    ('CHAIRi', 0.5, 1.0)
    """
    return Chair().add(candidates, references, annotated).scores()


def objects_named(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    annotated: Sequence[Collection[str]] | None = None,
) -> list[ObjectsNamed]:
    """For each picture the objects its candidate names, and which of them are hallucinated.

    >>> objects_named(["a dog on a bench"], [["a puppy"]], annotated=[["dog", "couch"]])
    [ObjectsNamed(mentioned=('dog', 'bench'), hallucinated=('bench',))]
    """
    check_shapes(candidates, references)
    if annotated is None:
        annotated = [()] * len(candidates)
    _check_annotations(annotated, len(candidates))
    pictures = []
    for candidate, captions, categories in zip(candidates, references, annotated, strict=True):
        present = set(categories)
        for caption in captions:
            for mention in mentions(caption):
                present |= mention.categories
        named = mentions(candidate)
        pictures.append(
            ObjectsNamed(
                tuple(mention.words for mention in named),
                # A word that may name several things is right if any of them is there.
                tuple(m.words for m in named if m.categories.isdisjoint(present)),
            )
        )
    return pictures


def _check_annotations(annotated: Sequence[Collection[str]], pictures: int) -> None:
    if len(annotated) != pictures:
        raise DataError(f"annotations of {len(annotated)} pictures for {pictures} candidates")
    for index, categories in enumerate(annotated):
        if unknown := sorted(set(categories).difference(CATEGORIES)):
            raise DataError(
                f"picture {index} is annotated with {unknown[0]!r}, which is not a COCO category"
            )


def _share(counts: Floats) -> Floats:
    """Hallucinated over mentioned; 0 where nothing is mentioned."""
    wrong, mentioned = counts[..., 0], counts[..., 1]
    return np.divide(wrong, mentioned, out=np.zeros_like(wrong), where=mentioned > 0)
