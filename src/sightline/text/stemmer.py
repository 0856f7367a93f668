"""The Snowball English ("Porter2") stemmer, in the edition METEOR 1.5 was released with.

Rules: https://snowballstem.org/algorithms/english/stemmer.html. Later editions of Snowball changed
some of them (and with them the stems of a few words), so a current stemmer gives another METEOR.
"""

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(letter * 2 for letter in "bdfgmnprt")

_WHOLE_WORDS = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}
_KEPT_AFTER_PLURAL = frozenset(
    ("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed")
)

# Suffix -> replacement, inside R1. Longer suffixes come first: only the longest one is looked at.
_STEP_2 = {
    "ational": "ate",
    "fulness": "ful",
    "iveness": "ive",
    "ization": "ize",
    "ousness": "ous",
    "biliti": "ble",
    "lessli": "less",
    "tional": "tion",
    "alism": "al",
    "aliti": "al",
    "ation": "ate",
    "entli": "ent",
    "fulli": "ful",
    "iviti": "ive",
    "ousli": "ous",
    "abli": "able",
    "alli": "al",
    "anci": "ance",
    "ator": "ate",
    "enci": "ence",
    "izer": "ize",
    "bli": "ble",
    "ogi": "og",
    "li": "",
}
_STEP_3 = {
    "ational": "ate",
    "tional": "tion",
    "alize": "al",
    "ative": "",
    "icate": "ic",
    "iciti": "ic",
    "ical": "ic",
    "ness": "",
    "ful": "",
}
_STEP_4 = (
    *("ement", "able", "ance", "ence", "ible", "ment", "ant", "ate", "ent", "ion", "ism", "iti"),
    *("ive", "ize", "ous", "al", "er", "ic"),
)


def _region(word: str, start: int) -> int:
    """Where the part after the first consonant that follows a vowel begins, from `start` on."""
    for place in range(start + 1, len(word)):
        if word[place] not in _VOWELS and word[place - 1] in _VOWELS:
            return place + 1
    return len(word)


def _ends_in_short_syllable(word: str) -> bool:
    if len(word) < 2 or word[-2] not in _VOWELS or word[-1] in _VOWELS:
        return False
    return len(word) == 2 or (word[-1] not in "wxY" and word[-3] not in _VOWELS)


def _has_vowel(part: str) -> bool:
    return not _VOWELS.isdisjoint(part)


def _mark_consonant_y(word: str) -> str:
    """Write `Y` for a y that begins the word or follows a vowel."""
    if "y" not in word:
        return word
    letters = list(word)
    for place, letter in enumerate(letters):
        if letter == "y" and (place == 0 or letters[place - 1] in _VOWELS):
            letters[place] = "Y"
    return "".join(letters)


def _step_1a(word: str) -> str:
    for suffix in ("'s'", "'s", "'"):
        if word.endswith(suffix):
            word = word.removesuffix(suffix)
            break
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _step_1b(word: str, r1: int) -> str:
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            cut = len(word) - len(suffix)
            return word[:cut] + "ee" if cut >= r1 else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if word.endswith(suffix):
            part = word.removesuffix(suffix)
            if not _has_vowel(part):
                return word
            if part.endswith(("at", "bl", "iz")):
                return part + "e"
            if part[-2:] in _DOUBLES:
                return part[:-1]
            return part + "e" if len(part) == r1 and _ends_in_short_syllable(part) else part
    return word


def _step_2(word: str, r1: int) -> str:
    for suffix, replacement in _STEP_2.items():
        if word.endswith(suffix):
            part = word.removesuffix(suffix)
            before = part[-1:]
            allowed = (suffix != "ogi" or before == "l") and (
                suffix != "li" or (before != "" and before in "cdeghkmnrt")
            )
            return part + replacement if len(part) >= r1 and allowed else word
    return word


def _step_3(word: str, r1: int, r2: int) -> str:
    for suffix, replacement in _STEP_3.items():
        if word.endswith(suffix):
            part = word.removesuffix(suffix)
            region = r2 if suffix == "ative" else r1
            return part + replacement if len(part) >= region else word
    return word


def _step_4(word: str, r2: int) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            part = word.removesuffix(suffix)
            allowed = suffix != "ion" or part.endswith(("s", "t"))
            return part if len(part) >= r2 and allowed else word
    return word


def _step_5(word: str, r1: int, r2: int) -> str:
    part = word[:-1]
    if word.endswith("e"):
        removable = len(part) >= r2 or (len(part) >= r1 and not _ends_in_short_syllable(part))
        return part if removable else word
    return part if word.endswith("ll") and len(part) >= r2 else word


def stem(word: str) -> str:
    """The stem of one lower-case English word.

    >>> [stem(word) for word in ("riding", "ponies", "skies", "happily")]
    ['ride', 'poni', 'sky', 'happili']
    """
    if word in _WHOLE_WORDS:
        return _WHOLE_WORDS[word]
    if len(word) < 3:
        return word
    word = _mark_consonant_y(word.removeprefix("'"))
    prefix = next((p for p in ("gener", "commun", "arsen") if word.startswith(p)), None)
    r1 = len(prefix) if prefix else _region(word, 0)
    r2 = _region(word, r1)
    word = _step_1a(word)
    if word not in _KEPT_AFTER_PLURAL:
        word = _step_1b(word, r1)
        if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
            word = word[:-1] + "i"
        word = _step_2(word, r1)
        word = _step_3(word, r1, r2)
        word = _step_4(word, r2)
        word = _step_5(word, r1, r2)
    return word.replace("Y", "y")
