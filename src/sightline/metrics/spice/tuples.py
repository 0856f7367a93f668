"""Scene-graph tuples: merged over the references, matched by synonyms, scored by F.

Anderson et al., ECCV 2016, section 3: the tuples of a graph are its objects, attributes and
relations; the references' graphs become one, in which synonymous words are one word; two tuples
match when their words are pairwise equal or stand in one WordNet synset.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sightline.metrics.spice.categories import CATEGORIES
from sightline.metrics.spice.scene_graph import SceneGraph
from sightline.text.wordnet import synsets

Tuples = Mapping[str, set[tuple[str, ...]]]  # by category, and "all"

# fmt: off
_COLOURS = frozenset([
    "black", "white", "red", "green", "blue", "yellow", "brown", "orange", "pink", "purple", "grey",
    "gray", "beige", "tan", "golden", "gold", "silver", "violet", "turquoise", "maroon", "navy",
    "cream", "blond", "blonde", "brunette", "crimson", "scarlet", "teal", "lavender", "magenta",
    "khaki", "olive", "bronze", "colorful", "colourful", "multicolored", "multicoloured",
])
_SIZES = frozenset([
    "big", "small", "large", "little", "tiny", "huge", "tall", "short", "long", "giant", "enormous",
    "massive", "gigantic", "miniature", "wide", "narrow", "thick", "thin", "great", "medium",
    "oversized", "immense", "mini",
])
_COUNTS = frozenset([
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty", "thirty", "forty", "fifty", "hundred", "thousand", "dozen",
])
# fmt: on


def tuple_f_scores(candidate: SceneGraph, references: Sequence[SceneGraph]) -> dict[str, float]:
    """F-score of a candidate's tuples, for "all" and for each category either side has tuples of.

    >>> dog = SceneGraph(frozenset({"dog"}), frozenset({("dog", "brown")}), frozenset())
    >>> tuple_f_scores(dog, [SceneGraph(frozenset({"dog"}), frozenset(), frozenset())])["all"]
    0.6666666666666666
    """
    naming = (
        _Naming(word for graph in references for word in graph.objects),
        _Naming(word for graph in references for _, word in graph.attributes),
        _Naming(word for graph in references for _, word, _ in graph.relations),
    )
    expected = _tuples(references, *naming)
    said = _tuples([candidate], *naming)
    scores = {"all": 0.0}  # a picture of which neither side says anything
    for category in ("all", *CATEGORIES):
        total = len(expected[category]) + len(said[category])
        if total:  # 2PR / (P + R) with P = m/|said|, R = m/|expected| is 2m / (|said| + |expected|)
            scores[category] = 2 * len(expected[category] & said[category]) / total
    return scores


class _Naming:
    """One name for each group of reference words that shared synsets link.

    Linking is transitive, so the names do not depend on the order of the references. A word from
    elsewhere takes the name of the reference words it is a synonym of, else it keeps its own.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._names: dict[str, str] = {}
        self._of_synset: dict[str, str] = {}  # synset -> a word in it
        for word in sorted(set(words)):
            self._names[word] = word
            for number in synsets(word):
                first = self._root(self._of_synset.setdefault(number, word))
                second = self._root(word)
                self._names[max(first, second)] = min(first, second)

    def _root(self, word: str) -> str:
        while self._names[word] != word:
            word = self._names[word]
        return word

    def __call__(self, word: str) -> str:
        if word in self._names:
            return self._root(word)
        linked = {self._root(self._of_synset[n]) for n in synsets(word) if n in self._of_synset}
        return min(linked, default=word)


def _tuples(
    graphs: Iterable[SceneGraph], objects: _Naming, attributes: _Naming, relations: _Naming
) -> Tuples:
    by_category: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for graph in graphs:
        for word in graph.objects:
            by_category["object"].add((objects(word),))
        for word, attribute in graph.attributes:
            described = (objects(word), attributes(attribute))
            by_category["attribute"].add(described)
            if (kind := _attribute_kind(attribute)) is not None:
                by_category[kind].add(described)
        for subject, relation, target in graph.relations:
            by_category["relation"].add((objects(subject), relations(relation), objects(target)))
    by_category["all"] = by_category["object"] | by_category["attribute"] | by_category["relation"]
    return by_category


def _attribute_kind(word: str) -> str | None:
    if word in _COLOURS:
        return "colour"
    if word in _COUNTS or word.isdigit():
        return "count"
    return "size" if word in _SIZES else None
