"""The words a captioner knows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sightline.errors import DataError
from sightline.text.tokenizer import tokenize

PAD, START, END, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<start>", "<end>", "<unknown>")


class Span(NamedTuple):
    """A word of a caption, and which of the caption's ids it is made of."""

    text: str
    start: int
    stop: int


class Vocabulary:
    """Words and their ids; ids 0-3 are padding, start, end and the unknown word.

    Tokens are those of the metrics, so that what is trained is what is scored.

    >>> vocabulary = Vocabulary(["a", "dog", "runs"])
    >>> vocabulary.encode("A dog runs!")
    [4, 5, 6]
    >>> vocabulary.decode([1, 4, 5, 6, 2, 0])
    'a dog runs'
    """

    whole_words = True  # False: a word may be made of several ids

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL, *words)
        self._ids = {word: i for i, word in enumerate(words, len(SPECIAL))}
        if len(set(self.words)) != len(self.words):
            twice = [word for word, count in Counter(self.words).items() if count > 1]
            raise DataError(f"vocabulary: the word '{twice[0]}' appears twice")

    @classmethod
    def build(
        cls, captions: Iterable[str], *, min_count: int = 1, size: int | None = None
    ) -> "Vocabulary":
        """From captions: the words said at least `min_count` times, at most the `size` commonest.

        Ids go by how often a word is said, then alphabetically, so equal captions give equal ids.
        """
        counts: Counter[str] = Counter()
        for caption in captions:
            counts.update(tokenize(caption))
        for special in SPECIAL:  # somebody wrote <end> into a caption: a word we do not know
            counts.pop(special, None)
        ranked = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        if not ranked:
            raise DataError(f"vocabulary: no word occurs {min_count} times in the captions given")
        return cls([word for _, word in ranked[:size]])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    __hash__ = None  # type: ignore[assignment]

    def id(self, word: str) -> int:
        """The id of one word; that of `<unknown>` for a word we do not know.

        The special words are not words of a caption: the text `<end>` is unknown and ends nothing.
        """
        return self._ids.get(word, UNKNOWN)

    def encode(self, caption: str) -> list[int]:
        """The ids of a caption's tokens, without start and end."""
        return [self.id(token) for token in tokenize(caption)]

    def encode_word(self, word: str, *, first: bool = False) -> list[int]:
        """The ids of a word within a caption, or at its beginning: here one."""
        return [self.id(word)]

    def spellings(self, word: str) -> tuple[int, ...]:
        """All ids that are this word alone."""
        return (self._ids[word],)

    def decode(self, ids: Iterable[int]) -> str:
        """The words of some ids up to `<end>`; start and padding are left out."""
        words = []
        for i in ids:
            if i == END:
                break
            if i not in (PAD, START):
                words.append(self.words[i])
        return " ".join(words)

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """The words of a caption's ids, without start, end and padding. Here each id is a word.

        >>> Vocabulary(["a", "dog"]).spans([4, 5])
        [Span(text='a', start=0, stop=1), Span(text='dog', start=1, stop=2)]
        """
        return [Span(self.words[word], place, place + 1) for place, word in enumerate(ids)]

    def complete_words(self) -> list[tuple[str, int]]:
        """The words that are one id each, with it."""
        return list(self._ids.items())

    def to_json(self) -> list[str]:
        """What a checkpoint keeps: the words, without the special ones."""
        return list(self.words[len(SPECIAL) :])

    @classmethod
    def from_json(cls, words: Any) -> "Vocabulary":
        """The vocabulary a checkpoint kept."""
        if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            raise DataError("vocabulary: must be a list of words")
        return cls(words)
