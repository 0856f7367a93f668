"""Foreign text is one line of signs that a terminal shows and does not act on."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.printing import printable


@given(st.text(st.characters()) | st.binary().map(os.fsdecode))
def test_whatever_it_is_it_is_printable_and_can_be_encoded(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()


def test_plain_text_in_any_language_is_left_alone():
    for text in ("", "a dog runs", "café", "犬が走る", "emoji 🐕"):
        assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nsightline: skipped: b", r"a\nsightline: skipped: b"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("gpj\u202e.exe", r"gpj\u202e.exe"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
    ],
)
def test_signs_that_are_acted_on_are_written_out(text, shown):
    assert printable(text) == shown
