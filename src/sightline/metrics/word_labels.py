"""Which words of a caption are right, as far as the references of its picture tell."""

import functools
from collections.abc import Sequence

import numpy as np

from sightline.metrics.coco_objects import mentions
from sightline.metrics.score import Floats, Score
from sightline.text.stemmer import stem
from sightline.text.stop_words import STOP_WORDS
from sightline.text.tokenizer import tokenize

_stem = functools.cache(stem)

# Names of people go by what they say. Under COCO's one category "person", which is CHAIR's, a man
# would be right wherever the references see a girl.
_MEN = ("man", "men", "guy", "guys", "gentleman", "gentlemen", "male", "males")
_WOMEN = ("woman", "women", "lady", "ladies", "female", "females")
_BABIES = ("baby", "babies", "infant", "infants", "toddler", "toddlers")
_BOYS, _GIRLS = ("boy", "boys"), ("girl", "girls")
_CHILDREN = ("child", "children", "kid", "kids")
_ANYONE = ("person", "persons", "people", "someone", "somebody", "human", "humans", "adult")
_IMPLIED_BY = {
    **{
        word: frozenset(names) for names in (_MEN, _WOMEN, _BABIES, _BOYS, _GIRLS) for word in names
    },
    **{word: frozenset((*_CHILDREN, *_BABIES, *_BOYS, *_GIRLS)) for word in _CHILDREN},
}


class LabelIndex:
    """Which of some words the references of a picture confirm; made once for many pictures.

    >>> index = LabelIndex(["puppy", "runs", "person", "man"])
    >>> sorted(index.confirmed(["A woman running with her dog."]))
    [0, 1, 2]
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._by_stem: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        self._by_category: dict[str, list[int]] = {}
        for number, word in enumerate(words):
            self._by_stem.setdefault(_stem(word), []).append(number)
            if word in _IMPLIED_BY:
                for name in _IMPLIED_BY[word]:
                    self._by_name.setdefault(name, []).append(number)
                continue
            named = {category for mention in mentions(word) for category in mention.categories}
            if word not in _ANYONE:
                named.discard("person")
            for category in named:
                self._by_category.setdefault(category, []).append(number)

    def confirmed(self, references: Sequence[str]) -> set[int]:
        """The numbers of the words that any reference says, or what amounts to the same.

        That is a word of the same stem, another name of the same COCO category, and for people a
        name that implies it: where a reference has a woman, `person` is right; where it has a
        person, `woman` is not.
        """
        said = {token for reference in references for token in tokenize(reference)}
        categories = {
            category
            for reference in references
            for mention in mentions(reference)
            for category in mention.categories
        }
        return {
            number
            for index, keys in (
                (self._by_stem, {_stem(token) for token in said}),
                (self._by_name, said),
                (self._by_category, categories),
            )
            for key in keys
            for number in index.get(key, ())
        }


def label_words(words: Sequence[str], references: Sequence[str]) -> list[bool]:
    """For each word whether the references of a picture confirm it, as `LabelIndex` has it.

    References leave things out, so a word that is called wrong may be right.

    >>> label_words(["puppy", "runs", "person", "man"], ["A woman running with her dog."])
    [True, True, True, False]
    """
    confirmed = LabelIndex(words).confirmed(references)
    return [number in confirmed for number in range(len(words))]


def wrong_words(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """The share of content words that no reference says; lower is better.

    Unlike CHAIR it needs no list of objects, so that it is defined for pictures of any kind.

    >>> wrong_words(["a red dog"], [["a dog", "a puppy"]]).corpus
    0.5
    """
    counts = np.zeros((len(candidates), 2))
    for row, (candidate, captions) in enumerate(zip(candidates, references, strict=True)):
        words = [word for word in tokenize(candidate) if word not in STOP_WORDS]
        counts[row] = len(words) - sum(label_words(words, captions)), len(words)
    return Score("wrong words", float(_share(counts.sum(0))), _share(counts), counts, _share)


def _share(counts: Floats) -> Floats:
    wrong, words = counts[..., 0], counts[..., 1]
    undefined = np.full(words.shape, np.nan)
    return np.asarray(np.divide(wrong, words, out=undefined, where=words > 0))
