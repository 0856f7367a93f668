"""Which words of a caption are right, as far as the references of its picture tell."""

from collections.abc import Sequence

from sightline.metrics.coco_objects import mentions
from sightline.text.stemmer import stem
from sightline.text.tokenizer import tokenize

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


def label_words(words: Sequence[str], references: Sequence[str]) -> list[bool]:
    """For each word whether any reference says it, or what amounts to the same.

    That is a word of the same stem, another name of the same COCO category, and for people a name
    that implies it: where a reference has a woman, `person` is right; where it has a person,
    `woman` is not. References leave things out, so a word that is called wrong may be right.

    >>> label_words(["puppy", "runs", "person", "man"], ["A woman running with her dog."])
    [True, True, True, False]
    """
    said = {token for reference in references for token in tokenize(reference)}
    stems = {stem(token) for token in said}
    categories = {
        category
        for reference in references
        for mention in mentions(reference)
        for category in mention.categories
    }
    return [_is_right(word, said, stems, categories) for word in words]


def _is_right(word: str, said: set[str], stems: set[str], categories: set[str]) -> bool:
    if stem(word) in stems:
        return True
    if word in _IMPLIED_BY:
        return not _IMPLIED_BY[word].isdisjoint(said)
    named = {category for mention in mentions(word) for category in mention.categories}
    if word not in _ANYONE:
        named.discard("person")
    return not named.isdisjoint(categories)
