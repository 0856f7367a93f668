"""METEOR's knowledge of English: stems, synonyms, function words and paraphrases."""

import functools
import importlib.util
import itertools
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.errors import MissingExtraError
from sightline.files import cache_folder
from sightline.metrics.meteor import index as meteor_index
from sightline.metrics.meteor.index import Source
from sightline.metrics.meteor.normalizer import normalize
from sightline.text.stemmer import stem

Ints = NDArray[np.int64]

_REMEMBERED = 1 << 17  # words or phrases looked up; beyond this, start again
_NOTHING: frozenset[int] = frozenset()

# WordNet's detachment rules in METEOR's order: the first result that has a synset is the base form.
_ENDINGS = (
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("men", "man"), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
    *(("ing", "e"), ("ing", ""), ("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
)


@dataclass(frozen=True, slots=True)
class Word:
    """What METEOR knows of one word; `number` is -1 for a word it never heard of."""

    text: str
    number: int
    stem: str
    synsets: frozenset[int]
    is_function: bool


class Phrase(NamedTuple):
    """A run of words in a caption that is a node of the index's trie."""

    start: int
    length: int
    node: int


@dataclass(frozen=True, slots=True)
class Caption:
    """A normalised caption with everything the matchers ask about it.

    Phrases are in the order of their start, then of their length. `nodes` are their nodes;
    `sources` are those that have paraphrases, each with the nodes of these.
    """

    words: list[Word]
    phrases: list[Phrase]
    nodes: frozenset[int]
    sources: list[tuple[Phrase, frozenset[int]]]


class MeteorData:
    """Looks up captions in an index, and remembers the words and phrases it met."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], lists: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self._function_words = frozenset(lists["function_words"])
        self._prefixes: Mapping[str, bool] = lists["prefixes"]
        self._letters = arrays["words"].tobytes()
        self._word_starts: list[int] = arrays["word_starts"].tolist()
        self._words: dict[str, Word] = {}
        self._targets: dict[int, frozenset[int]] = {}

    def captions(self, texts: Sequence[str]) -> list[Caption]:
        """Normalise captions and find their words and phrases; quickest for many at a time."""
        sentences = [
            [self._word(word) for word in normalize(text, self._prefixes)] for text in texts
        ]
        places, lengths, nodes = self._walk(sentences)
        begins = np.cumsum([0, *(len(words) + 1 for words in sentences)])
        owners = np.searchsorted(begins, places, side="right") - 1
        columns = (column.tolist() for column in (places - begins[owners], lengths, nodes))
        phrases = list(map(Phrase._make, zip(*columns, strict=True)))
        targets = self._targets_of(nodes)
        bounds = np.searchsorted(owners, np.arange(len(sentences) + 1)).tolist()
        captions = []
        for words, (first, end) in zip(sentences, itertools.pairwise(bounds), strict=True):
            contained = phrases[first:end]
            sources = [pair for pair in zip(contained, targets[first:end], strict=True) if pair[1]]
            contained_nodes = frozenset([phrase.node for phrase in contained])
            captions.append(Caption(words, contained, contained_nodes, sources))
        return captions

    def in_table_order(self, node: int, targets: frozenset[int]) -> list[int]:
        """Those of a phrase's paraphrases, in the order of the table."""
        row = int(self._source_rows(node))
        return [target for target in self._row("target", row) if target in targets]

    def _row(self, name: str, number: int) -> list[int]:
        """One of the index's flat lists; that of number -1 is empty."""
        if number < 0:
            return []
        starts = self._arrays[f"{name}_starts"]
        row: list[int] = self._arrays[f"{name}s"][starts[number] : starts[number + 1]].tolist()
        return row

    def _number(self, text: str) -> int:
        starts, letters = self._word_starts, self._letters
        sought = text.encode(errors="surrogatepass")
        places = range(len(starts) - 1)
        place = bisect_left(places, sought, key=lambda n: letters[starts[n] : starts[n + 1]])
        known = place in places and letters[starts[place] : starts[place + 1]] == sought
        return place if known else -1

    def _word(self, text: str) -> Word:
        word = self._words.get(text)
        if word is None:
            number = self._number(text)
            synsets = frozenset(self._row("synset", number) + self._base_synsets(text, number))
            word = Word(text, number, stem(text), synsets, text in self._function_words)
            if len(self._words) >= _REMEMBERED:
                self._words.clear()
            self._words[text] = word
        return word

    def _base_synsets(self, text: str, number: int) -> list[int]:
        """Synsets of a word's base form: irregular forms are listed, the rest have endings."""
        if bases := self._row("base", number):
            return [synset for base in bases for synset in self._row("synset", base)]
        if len(text) > 2 and not text.endswith("ss"):
            for ending, replacement in _ENDINGS:
                if text.endswith(ending):
                    base = self._number(text.removesuffix(ending) + replacement)
                    if synsets := self._row("synset", base):
                        return synsets
        return []

    def _source_rows(self, nodes: Any) -> Ints:
        """The row of each phrase among those that have paraphrases, -1 for a phrase without."""
        sources = self._arrays["sources"]
        nodes = np.asarray(nodes, sources.dtype)  # or searchsorted would convert all sources
        rows = np.minimum(sources.searchsorted(nodes), len(sources) - 1)
        return np.where(sources[rows] == nodes, rows, -1)

    def _targets_of(self, nodes: Ints) -> list[frozenset[int]]:
        """The nodes of each phrase's paraphrases."""
        if len(self._targets) >= _REMEMBERED:
            self._targets.clear()
        known = self._targets
        unique, inverse = np.unique(nodes, return_inverse=True)
        for node, row in zip(unique.tolist(), self._source_rows(unique).tolist(), strict=True):
            if node not in known:
                known[node] = frozenset(self._row("target", row)) or _NOTHING
        targets = [known[node] for node in unique.tolist()]
        return [targets[number] for number in inverse.tolist()]

    def _walk(self, sentences: Sequence[Sequence[Word]]) -> tuple[Ints, Ints, Ints]:
        """Walk the trie from every word of every sentence at once.

        Returns the place, length and node of every phrase met. Places count all words and one end
        mark for each sentence, which no phrase passes.
        """
        numbers = [n for words in sentences for n in (*[word.number for word in words], -1)]
        flat = np.array(numbers, np.int64)
        edges, vocabulary = self._arrays["edges"], len(self._word_starts) - 1
        places = np.flatnonzero(flat >= 0)
        nodes = np.zeros_like(places)
        steps = [(places[:0], places[:0], nodes[:0])]
        for length in itertools.count(1):
            following = flat[places + length - 1]
            known = following >= 0
            keys = nodes[known] * vocabulary + following[known]
            unique, inverse = np.unique(keys, return_inverse=True)
            edge = np.minimum(edges.searchsorted(unique), len(edges) - 1)
            reached = np.where(edges[edge] == unique, edge + 1, 0)[inverse]
            places, nodes = places[known][reached > 0], reached[reached > 0]
            if not len(places):
                break
            steps.append((places, np.full_like(places, length), nodes))
        places, lengths, nodes = (np.concatenate(column) for column in zip(*steps, strict=True))
        order = np.argsort(places, kind="stable")
        return places[order], lengths[order], nodes[order]


def _find_source() -> Source:
    """METEOR's files in the installed wheel, found without importing it."""
    package = importlib.util.find_spec("pycocoevalcap")
    for folder in (package and package.submodule_search_locations) or ():
        meteor = Path(folder) / "meteor"
        source = Source(meteor / "meteor-1.5.jar", meteor / "data" / "paraphrase-en.gz")
        if source.jar.is_file() and source.table.is_file():
            return source
    raise MissingExtraError("METEOR", "meteor")


@functools.lru_cache(maxsize=1)
def _open(source: Source, path: Path) -> MeteorData:
    return MeteorData(*meteor_index.read_or_build(source, path))


def load() -> MeteorData:
    """METEOR's data from the extra `meteor`, indexed into the user's cache the first time."""
    source = _find_source()
    return _open(source, cache_folder() / f"meteor-{source.fingerprint()}.safetensors")
