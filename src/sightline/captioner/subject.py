"""What a report is about: the words of a caption, and words that it does not say."""

from collections.abc import Sequence

from sightline.captions import Caption, UnknownWord
from sightline.errors import ConfigError


def unsaid(
    caption: Caption, why_not: Sequence[tuple[str, int | None]], unknown: dict[str, UnknownWord]
) -> list[tuple[str, int | None]]:
    """What can be asked about: known words for unknown ones, but none that the caption says."""
    said = [word.text for word in caption.words]
    known = [(unknown[word].nearest if word in unknown else word, place) for word, place in why_not]
    return [
        (word, place)
        for word, place in dict.fromkeys(known)
        if word is not None
        and not (word in said if place is None else said[place : place + 1] == [word])
    ]


def places_of(caption: Caption, words: Sequence[str]) -> list[int]:
    """Where a caption says these words, of which one may be "all"."""
    said = [word.text for word in caption.words]
    if "all" in words:
        return list(range(len(said)))
    for word in words:
        if word not in said:
            raise ConfigError(
                f"the caption '{caption}' does not say '{word}': give a word of the caption, or "
                "ask why it does not say this one"
            )
    return [place for place, word in enumerate(said) if word in words]
