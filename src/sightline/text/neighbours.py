"""What stands nearest to words that a captioner does not know, looked up before anybody asks."""

import functools

from sightline.errors import MissingExtraError
from sightline.text.nearest import KnownWords
from sightline.text.wordnet import things

_WORDS = 4000  # in common use; of which
_LENGTH = 40_000  # characters, at most, are written


@functools.lru_cache(maxsize=4)
def unknown_neighbours(known: tuple[str, ...]) -> dict[str, str]:
    """Unknown things by the nearest of the `known` words, commonest first; spaces between them.

    Nothing where WordNet is not installed (the extra `spice`).

    >>> table = unknown_neighbours(("a", "dog", "horn"))
    >>> "trumpet" in table["horn"].split(), "wolf" in table["dog"].split()
    (True, True)
    """
    try:
        candidates = things()
    except MissingExtraError:
        return {}
    words, spelt = KnownWords(known), set(known)
    unknown = [word for word in candidates if word not in spelt][:_WORDS]
    table: dict[str, list[str]] = {}
    length = 0
    for word in unknown:
        near = words.like(word)
        if near is None:
            continue
        length += len(word) + 1
        if near.text not in table:
            length += len(near.text) + 6  # quotation marks, a colon and a comma
        if length > _LENGTH:
            break
        table.setdefault(near.text, []).append(word)
    return {nearest: " ".join(others) for nearest, others in table.items()}
