"""The tokens of the COCO caption evaluation: Penn Treebank words, lower case, no punctuation.

The published numbers are counted over the tokens of a Java program. These are its rules as far as
captions exercise them, found by comparing outputs; `benchmarks/tokenizer_parity.py` compares the
two over any number of captions, and `docs/metrics.md` lists the kinds of caption that differ.
"""

import re
from itertools import chain

# What the COCO evaluation throws away: quotes, dashes, and single . ? ! , : ; or an ellipsis. Its
# list also names the round and curly brackets, but in capitals while the tokens are lower case, so
# brackets stay (`-lrb-`); `&`, `%`, `!!` and the like were never in the list.
_DROPPED = re.compile(r"[`'\"]{1,2}|[.?!,:;]|-+|\.{3,}")

_PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "--", "—": "--", "…": "..."})
_ENTITIES = {"&amp;": "&", "&quot;": '"', "&apos;": "'", "&lt;": "<", "&gt;": ">"}
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_SYMBOLS = {"½": "1/2", "¼": "1/4", "¾": "3/4", "¢": "cents", "£": "#", "€": "$"}
_SPELLED = _BRACKETS | _SYMBOLS

_ABBREVIATIONS = (
    "adj|adm|adv|al|ala|alex|apr|ariz|assn|asst|atty|attys|aug|ave|bhd|bldg|blvd|brig|bros|"
    "calif|capt|cf|cie|cmdr|co|col|colo|conn|corp|cos|cpl|ct|dak|dec|dept|det|dr|drs|elec|"
    "ens|esq|est|etc|ext|feb|fla|fri|ft|ga|gen|gov|govs|hon|inc|ind|insp|intl|invt|jan|jos|"
    "jr|jul|jun|kan|kans|ky|lt|ltd|maj|mar|md|mfg|mich|minn|mlle|mme|mo|mon|mont|mr|mrs|ms|"
    "msgr|mt|mtg|natl|neb|nev|nov|oct|okla|penn|pfc|ph|plc|ppte|ppty|pres|prof|pte|ptes|"
    "pty|ptys|pvt|rd|rep|reps|rev|rt|sen|sens|sep|sept|seq|sfc|sgt|spc|sq|sr|st|ste|supt|"
    "sys|tel|tenn|thu|tue|tues|univ|va|vs|vt|wed|wis|wisc|wm|wyo"
)
# States of the USA; in lower case some are other words.
_STATES = "Ark|Az|Del|Ill|La|Mass|Miss|Ore|Pa|Tex|Wash|ARK|AZ|DEL|ILL|LA|MASS|MISS|ORE|PA|TEX|WASH"
_BEFORE_NUMBER = "art|ca|fig|figs|no|nos|op|pp|prop"

_JOINED = [
    ("can", "not"),
    ("gon", "na"),
    ("wan", "na"),
    ("got", "ta"),
    ("lem", "me"),
    ("gim", "me"),
]
_JOINED_WORDS = frozenset(first + second for first, second in _JOINED)

_LETTER, _ALNUM = r"[^\W\d_]", r"[^\W_]"
_NAME = rf"{_LETTER}{_ALNUM}*(?:[.!?]{_LETTER}{_ALNUM}*)*"  # street.near is one word to the tool
_SLASHED = rf"{_ALNUM}+(?:-{_LETTER}+)*"

# Group 1 is the token; what follows it is context. As in any lexer the longest match wins (context
# included), and the first of equals.
_RULES = [
    re.compile(rule)
    for rule in (
        r"((?i:-[lr][rsc]b-))",
        r"(</?[A-Za-z!][^<>]*>)",
        r"((?i:https?)://[^\s<>\"]+\.[^\s<>\"]*[^\s<>\".,;:!?)])",
        r"((?i:www)\.[A-Za-z\d-]+(?:\.[A-Za-z\d-]+)+)",
        r"([\w.+-]*[^\W_]@[\w-]+(?:\.[\w-]+)*)",
        rf"(@[A-Za-z_]\w*|\#{_LETTER}+)",
        # Several words written as one.
        *(rf"((?i:{first}))(?i:{second})" for first, second in _JOINED),
        rf"({_LETTER}{_ALNUM}*?)(?i:n't)",
        r"((?i:n't))",
        rf"((?i:'(?:[smd]|ll|re|ve)))(?!{_ALNUM})",
        r"('[nN])$",
        r"((?i:'n'|'em|'till?|'cause))",
        r"((?i:'t))(?i:is|was)",
        # Apostrophes inside a word.
        rf"((?:{_ALNUM}+-)*(?:[dlnoA-HJ-XZ]|[Qq]u)'{_LETTER}{{2,}})",
        rf"({_ALNUM}+(?i:[aeiou]'[aeiou]){_LETTER}*|[oO]'[oO])",
        r"((?i:c'mon|s'mores|ma'am|ev'ry|ne'er|ol'|d'|dunkin'))",
        rf"([yYj]'){_LETTER}",
        r"('\d\d[sS]?)(?![\w'.\"])",
        # Periods that belong to the word.
        r"((?:[A-Za-z]\.)+|(?i:ph\.d\.))",
        rf"((?i:{_ABBREVIATIONS})\.)",
        rf"((?:{_STATES})\.)",
        rf"((?i:{_BEFORE_NUMBER})\.)\d",
        rf"((?:{_NAME}|{_ALNUM}+(?:-{_ALNUM}+)*)\.)[,;:]",
        # Words, words joined by hyphens, slashes or ampersands, numbers.
        rf"({_NAME}(?:\.?(?:-{_ALNUM}+)+)?)",
        rf"({_ALNUM}+[.,]\d+(?:-{_ALNUM}+)+)",
        rf"({_ALNUM}+(?:[-_]{_ALNUM}+)*)",
        rf"({_SLASHED}(?:/{_SLASHED}){{1,2}})",
        r"((?:\d+-)?\d+/\d+(?:-[^\W\d_]+)?)",
        r"([A-Z]+(?:&[A-Z]+)+)",
        r"([-+]?\d*(?:[.:,]\d+)+)",
        r"([-+]?\d+)",
        # What is no word.
        r"([<>]?[:;=]['-]?(?:[()\[\]{DPOp@\\|3]|-[lr]rb-))(?![\w(])",
        r"([Cc]\+\+|[CcFf]\#|[A-Z]\$|\^_\^|-_-)",
        r"(''|``|<<|>>|\.\.\.+|--+|[!?]+|\*+|\S)",
    )
]


# A letter with a period is an initial (`J. Smith`), unless a sentence ends there.
_STARTERS = (
    "a|about|according|after|an|as|at|but|earlier|he|her|here|however|if|in|it|last|many|"
    "more|now|once|one|other|our|she|since|so|some|such|that|the|their|then|there|these|"
    "they|this|we|what|when|while|yet|you"
)
_SENTENCE_END = re.compile(rf"(?<!\S)([A-Za-z])\.(?=\s*$|\s+(?=[A-Z])(?i:{_STARTERS})\b)")
_NUMBERED = re.compile(rf"\b((?i:{_BEFORE_NUMBER})\.)\s+(?=\d)")


def _lex(chunk: str) -> list[str]:
    """Split one run of non-space characters into Treebank tokens, punctuation included."""
    chunk = chunk.translate(_PLAIN)
    if "&" in chunk:
        for entity, character in _ENTITIES.items():
            chunk = chunk.replace(entity, character)
    tokens = []
    start = 0
    while start < len(chunk):
        matches = [match for rule in _RULES if (match := rule.match(chunk, start))]
        longest = max(matches, key=lambda match: match.end())
        tokens.append(longest.group(1))
        start += len(tokens[-1])
    return tokens


def _spell(token: str) -> str:
    """Lower case, brackets and symbols by name, as the reference writes a token."""
    if token[-1] in "()" and len(token) > 1:  # a smiley
        return token[:-1].lower() + _SPELLED[token[-1]]
    return _SPELLED.get(token, token.lower())


class _Chunks(dict[str, tuple[str, ...]]):
    """Tokens of each run of non-space characters seen; captions repeat these very often."""

    MOST = 1 << 17
    LONGEST = 64  # characters; longer runs are no words and would only fill the memory

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if chunk.isalpha() and chunk.lower() not in _JOINED_WORDS:  # no rule can split it
            tokens: tuple[str, ...] = (chunk.lower(),)
        else:
            tokens = tuple(_spell(token) for token in _lex(chunk) if not _DROPPED.fullmatch(token))
        if len(chunk) <= self.LONGEST:
            if len(self) >= self.MOST:
                self.clear()
            self[chunk] = tokens
        return tokens


_CHUNKS = _Chunks()


def tokenize(caption: str) -> list[str]:
    """Split a caption into the tokens that BLEU, ROUGE-L and CIDEr are counted over.

    >>> tokenize("A dog (brown) doesn't run.")
    ['a', 'dog', '-lrb-', 'brown', '-rrb-', 'does', "n't", 'run']
    """
    caption = caption.rstrip()
    # Only a period's meaning depends on the next word: inside, or after a letter at the end.
    if ". " in caption or caption[-3:-2] == " ":
        caption = _NUMBERED.sub(r"\1", _SENTENCE_END.sub(r"\1", caption))
    return list(chain.from_iterable(map(_CHUNKS.__getitem__, caption.split())))
