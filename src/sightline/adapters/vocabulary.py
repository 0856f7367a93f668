"""The pieces that a transformers tokenizer cuts words into, as a vocabulary."""

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sightline.text.vocabulary import END, PAD, SPECIAL, START, UNKNOWN, Span, Vocabulary

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]+")
_FORMS = (str, str.capitalize)  # a word within a sentence, and at its beginning


class PieceVocabulary(Vocabulary):
    """Ids are those of a tokenizer, after our four special ones; words are made of several.

    A word is what a reader takes for one: letters, or a sign of punctuation. It is spelled in lower
    case, as everywhere in Sightline; the text of a caption keeps its capitals.
    """

    whole_words = False

    def __init__(self, tokenizer: Any, size: int, end: int, *, space_first: bool) -> None:
        self.tokenizer, self.size, self.end = tokenizer, size, end
        self._space_first = space_first  # whether the first word of a caption follows a space
        self._unknown: int | None = tokenizer.unk_token_id

    @functools.cached_property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        """The text of each piece, for readers: the blank before it is left out."""
        known = min(self.size, len(self.tokenizer))
        pieces = self.tokenizer.batch_decode(
            [[number] for number in range(known)], clean_up_tokenization_spaces=False
        )
        missing = ["<unknown>"] * (self.size - known)
        return (*SPECIAL, *(piece.strip().removeprefix("##") for piece in pieces), *missing)

    def __len__(self) -> int:
        return len(SPECIAL) + self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PieceVocabulary) and self.words == other.words

    __hash__ = None

    def __contains__(self, word: str) -> bool:
        return bool(word) and UNKNOWN not in self.encode(word)

    def id(self, word: str) -> int:
        """The id of a word of one piece; `<unknown>` for others."""
        ids = self.encode_word(word)
        return ids[0] if len(ids) == 1 else UNKNOWN

    def encode(self, caption: str) -> list[int]:
        """The pieces of a caption, as it would be said."""
        text = " " + caption.strip() if self._space_first else caption.strip()
        unknown = self._unknown
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if self.tokenizer.eos_token_id == unknown:  # GPT-2's: bytes are never unknown
            unknown = None
        return [UNKNOWN if i == unknown else i + len(SPECIAL) for i in ids]

    def encode_word(self, word: str, *, first: bool = False) -> list[int]:
        return self.encode(word) if first else self.encode(f"a {word}")[1:]

    def decode(self, ids: Iterable[int]) -> str:
        said: list[int] = []
        for i in ids:
            if i == END:
                break
            if i >= len(SPECIAL):
                said.append(i - len(SPECIAL))
        return self._text(said).strip()

    def _text(self, pieces: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            pieces, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """Words of pieces: a piece belongs to the word in which its first letter stands.

        Pieces of nothing but blanks, and those that show no text, belong to the word before them.
        """
        unknown = self._unknown or 0
        pieces = [i - len(SPECIAL) if i >= len(SPECIAL) else unknown for i in ids]
        text = self._text(pieces)
        ends = [len(self._text(pieces[: n + 1])) for n in range(len(pieces))]
        words = list(_WORD.finditer(text))
        if not words:
            return []
        begins = [0, *ends[:-1]]
        owners: list[int] = []
        number = 0
        for begin, end in zip(begins, ends, strict=True):
            first = begin + len(text[begin:end]) - len(text[begin:end].lstrip())
            if first < end:
                while number + 1 < len(words) and words[number + 1].start() <= first:
                    number += 1
            owners.append(number)
        return [
            Span(words[n].group().lower(), owners.index(n), len(owners) - owners[::-1].index(n))
            for n in dict.fromkeys(owners)
        ]

    def complete_words(self) -> list[tuple[str, int]]:
        """Pieces that begin a word, by their text: most are words of their own."""
        tokens = self.tokenizer.convert_ids_to_tokens(range(min(self.size, len(self.tokenizer))))
        marked = any(token.startswith(("Ġ", "▁")) for token in tokens if token)
        found: dict[str, int] = {}
        for number, token in enumerate(tokens):
            begins = token is not None and (
                token.startswith(("Ġ", "▁")) if marked else not token.startswith("##")
            )
            text = self.words[number + len(SPECIAL)].lower()
            if begins and text.isalpha():
                found.setdefault(text, number + len(SPECIAL))
        return list(found.items())

    def spellings(self, word: str) -> tuple[int, ...]:
        """Those of one piece, with a capital or without, after a blank or not."""
        texts = [f"a {form(word)}" for form in _FORMS]
        ends = [self.encode(text)[1:] for text in texts]
        starts = [
            self.tokenizer(form(word), add_special_tokens=False)["input_ids"] for form in _FORMS
        ]
        single = [ids[0] for ids in ends if len(ids) == 1]
        single += [ids[0] + len(SPECIAL) for ids in starts if len(ids) == 1]
        return tuple(dict.fromkeys(i for i in single if i not in (PAD, START, END, UNKNOWN)))

    def to_json(self) -> list[str]:
        return list(self.words[len(SPECIAL) :])
