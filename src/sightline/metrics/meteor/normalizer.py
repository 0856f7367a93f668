"""The text METEOR compares: what its `-norm` option makes of a caption.

English rules of METEOR 1.5: punctuation set apart and kept, hyphens between letters opened,
contractions split before the apostrophe, a final period set apart unless it belongs to an
abbreviation, everything in lower case.
"""

import re
from collections.abc import Mapping

# The letters METEOR knows: Latin with its accents, Cyrillic, phonetic extensions.
_ALPHA = "A-Za-zÀ-ÖØ-öø-žŸЀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_ALNUM = "0-9" + _ALPHA

_OTHER_MARK = re.compile(rf"([^{_ALNUM} \t\n\v\f\r.'`,\-‘’])")
_DOTS = re.compile(r"\.{2,}")
# A comma is set apart unless a digit stands on both sides. A character that one match has used as
# its right neighbour is not seen as the left neighbour of the next: three passes, as in METEOR.
_COMMAS = (
    re.compile(r"([^0-9]),([^0-9])"),
    re.compile(r"([0-9]),([^0-9])"),
    re.compile(r"([^0-9]),([0-9])"),
)
_SINGLE_QUOTE = re.compile("[`‘’]")
_DOUBLE_QUOTE = re.compile("[“”]|''")
_HYPHEN = re.compile(rf"([{_ALNUM}.])-([{_ALNUM}])")
_LONE_APOSTROPHES = (
    re.compile(rf"([^{_ALPHA}])'([^{_ALPHA}])"),
    re.compile(rf"([^{_ALPHA}0-9])'([{_ALPHA}])"),
    re.compile(rf"([{_ALPHA}])'([^{_ALPHA}])"),
)
_CONTRACTIONS = (re.compile(rf"([{_ALPHA}])'([{_ALPHA}])"), re.compile(r"([0-9])'(s)"))
_LETTER = re.compile(rf"[{_ALPHA}]")
_LOWER = re.compile("[a-z]")
_DIGIT = re.compile("[0-9]")
_WIDE_SPACE = re.compile("[\u2000-\u200a\u202f\u205f\u3000\u00a0]")
_SPACES = re.compile(r"[ \t\n\f\r]+")
_PLAIN = re.compile(r"[a-z \n]*")


def _split(text: str) -> list[str]:
    return [word for word in _SPACES.split(text) if word]


def _set_apart(text: str) -> str:
    """Separate every mark but the final period of a word by spaces."""
    text = _OTHER_MARK.sub(r" \1 ", f" {text} ")
    text = _DOTS.sub(r" \g<0> ", text)
    for comma in _COMMAS:
        text = comma.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTE.sub(' " ', _SINGLE_QUOTE.sub("'", text))
    text = _HYPHEN.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    for apostrophe in _LONE_APOSTROPHES:
        text = apostrophe.sub(r"\1 ' \2", text)
    for contraction in _CONTRACTIONS:
        text = contraction.sub(r"\1 '\2", text)
    return text


def normalize(caption: str, prefixes: Mapping[str, bool]) -> list[str]:
    """The words METEOR sees in a caption.

    `prefixes` holds the abbreviations that keep their period; true for those that keep it only
    before a number.

    >>> normalize("A well-known dog, isn't it?  At 5 p.m.", {})
    ['a', 'well', 'known', 'dog', ',', 'isn', "'t", 'it', '?', 'at', '5', 'pm']
    """
    if _PLAIN.fullmatch(caption):  # nothing below would change it
        return caption.split()
    words = _split(_set_apart(caption))
    kept: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        before = word[:-1]
        if word[-1] != "." or not before.strip("."):
            kept.append(word)
        elif "." in before and _LETTER.search(before):
            kept.append(word.replace(".", ""))
        elif (
            prefixes.get(before) is False
            or _LOWER.match(following)
            or (prefixes.get(before) and _DIGIT.match(following))
        ):
            kept.append(word)
        else:
            kept += [before, "."]
    return _split(_WIDE_SPACE.sub(" ", " ".join(kept)).lower())
