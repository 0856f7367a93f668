"""Text that others wrote, made safe to print and to write."""


def printable(text: object) -> str:
    r"""Foreign text on one line, without a character that a terminal would act on.

    File names, captions, words and what files contain may hold line breaks, escape sequences that
    clear the screen, or bytes that are no text. They are shown as Python would write them.

    >>> print(printable("photo\x1b[2J\n.jpg"))
    photo\x1b[2J\n.jpg
    >>> import os
    >>> print(printable(os.fsdecode(b"caf\xe9.jpg")))
    caf\xe9.jpg
    """
    words = str(text)
    if words.isprintable():
        return words
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in words)


def encodable(text: str) -> str:
    r"""Text that UTF-8 can hold: half of a surrogate pair, as JSON can have it, becomes a "?".

    >>> encodable("a cat \ud83d")
    'a cat ?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def _escaped(sign: str) -> str:
    # A byte of a file name that is no UTF-8 (PEP 383).
    if 0xDC80 <= ord(sign) <= 0xDCFF:
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode("ascii")
