"""The tokens of the COCO caption evaluation: Penn Treebank words, lower case, no punctuation."""

import re

# What the COCO evaluation throws away. Its list names the brackets in capitals while the tokens
# are lower case, so brackets stay (`-lrb-`); `&`, `%`, `!!` and the like were never in it.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_TOKEN = re.compile(
    r"""
    -[lr][rsc]b-                                  # a bracket that is already a token
  | n't(?!\w) | '(?:s|m|d|ll|re|ve)(?!\w)          # clitics
  | \d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s)?(?!\w)      # numbers
  | (?:[a-z]\.){2,}                                # u.s.a.
  | \w+?(?=n't(?!\w))                              # is|n't
  | \w+(?:-\w+)*                                   # words
  | \.\.+ | [!?]+ | --+ | \S
    """,
    re.VERBOSE,
)


class _Chunks(dict[str, tuple[str, ...]]):
    """Tokens of each run of non-space characters seen; a caption is a sum of these."""

    LIMIT = 1 << 17

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = (_BRACKETS.get(word, word) for word in _TOKEN.findall(chunk.lower()))
        tokens = tuple(word for word in words if word not in PUNCTUATION and word != '"')
        if len(self) >= self.LIMIT:
            self.clear()
        self[chunk] = tokens
        return tokens


_CHUNKS = _Chunks()


def tokenize(caption: str) -> list[str]:
    """Split a caption into the tokens that BLEU, ROUGE-L and CIDEr are counted over.

    >>> tokenize("A dog (brown) doesn't run.")
    ['a', 'dog', '-lrb-', 'brown', '-rrb-', 'does', "n't", 'run']
    """
    return [token for chunk in caption.split() for token in _CHUNKS[chunk]]
