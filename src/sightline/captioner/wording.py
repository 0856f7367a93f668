"""Words that people give, as the ids of a captioner's vocabulary."""

from collections.abc import Sequence

from sightline.captions import UnknownWord, Word
from sightline.errors import ConfigError
from sightline.text.nearest import nearest_word
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary


def require_known(vocabulary: Vocabulary, words: Sequence[str]) -> None:
    """Refuse words that the vocabulary does not have."""
    unknown = [f"'{word}'" for word in words if word not in vocabulary]
    if unknown:
        kind = "word" if len(unknown) == 1 else "words"
        raise ConfigError(f"the captioner does not know the {kind} {', '.join(unknown)}")


def single_ids(vocabulary: Vocabulary, words: Sequence[str], what: str) -> tuple[int, ...]:
    """The ids of words, of which each must have one of its own; other spellings come last."""
    require_known(vocabulary, words)
    spellings = [vocabulary.spellings(word) for word in words]
    for word, ids in zip(words, spellings, strict=True):
        if not ids:
            raise ConfigError(
                f"'{word}' has several pieces in this captioner's vocabulary; only words of "
                f"one piece can be {what}"
            )
    return (*(ids[0] for ids in spellings), *(i for ids in spellings for i in ids[1:]))


def ids_of_word(vocabulary: Vocabulary, word: Word, place: int) -> list[int]:
    """What a word is made of as the captioner reads it; another's ids are other words here."""
    text = word.read_as or word.text
    if max(word.ids, default=len(vocabulary)) < len(vocabulary):
        spans = vocabulary.spans(word.ids)
        if spans and spans[0].text == text:
            return list(word.ids)
    return vocabulary.encode_word(text, first=place == 0)


def nearest_known(vocabulary: Vocabulary, word: str) -> UnknownWord:
    """A word that the vocabulary does not have, with the nearest one that it has."""
    near = nearest_word(word, [known for known, _ in vocabulary.complete_words()])
    return UnknownWord(word, *(near or (None, None)))


def stand_in(vocabulary: Vocabulary, word: str) -> str:
    """What is read in the place of an unknown word. One that is only spelt like it misleads."""
    near = nearest_known(vocabulary, word) if is_content(word) else UnknownWord(word, None, None)
    return near.nearest if near.nearest and near.nearest_by != "spelling" else SPECIAL[UNKNOWN]
