"""Which words of a caption are to be explained."""

from collections.abc import Sequence

from sightline.data.vocabulary import Vocabulary
from sightline.errors import ConfigError

Asked = int | str | tuple[int, str]


def ask(
    words: str | Sequence[Asked], caption: Sequence[int], vocabulary: Vocabulary
) -> list[tuple[int, int]]:
    """Places and word ids, of words asked for in any of the ways a person would.

    `"all"` is every word. In a list, a number is a place, counted from 0; a word is where the
    caption first says it; a place with a word asks why that word is not (or is) there.

    >>> vocabulary = Vocabulary(["a", "cat", "dog"])
    >>> ask("all", [4, 5], vocabulary)
    [(0, 4), (1, 5)]
    >>> ask([0, "cat", (1, "dog")], [4, 5], vocabulary)
    [(0, 4), (1, 5), (1, 6)]
    """
    if isinstance(words, str):
        if words != "all":
            raise ConfigError(f"explain: words are 'all' or a list, not '{words}'")
        return list(enumerate(caption))
    return [_question(asked, caption, vocabulary) for asked in words]


def _question(asked: Asked, caption: Sequence[int], vocabulary: Vocabulary) -> tuple[int, int]:
    if isinstance(asked, str):
        word = _known(asked, vocabulary)
        if word not in caption:
            raise ConfigError(
                f"explain: the caption does not say '{asked}'; to ask why not, give a place, too"
            )
        return caption.index(word), word
    place, other = asked if isinstance(asked, tuple) else (asked, None)
    # One past the last word is a place as well: there the caption ends, and another may not have.
    if not 0 <= place <= len(caption) - (other is None):
        raise ConfigError(f"explain: the caption has {len(caption)} words, and no place {place}")
    return place, caption[place] if other is None else _known(other, vocabulary)


def _known(word: str, vocabulary: Vocabulary) -> int:
    if word not in vocabulary:
        raise ConfigError(f"explain: the captioner does not know the word '{word}'")
    return vocabulary.id(word)
