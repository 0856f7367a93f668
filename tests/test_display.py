"""The seam between captions and what draws them."""

from pathlib import Path

import pytest

from sightline.display import draw, to_html
from sightline.errors import ConfigError


class Noun:
    def __str__(self) -> str:
        return "a < b"


def test_a_noun_that_nothing_draws_is_shown_as_text_and_refused_as_a_figure() -> None:
    assert to_html(Noun()) == "<pre>a &lt; b</pre>"
    with pytest.raises(ConfigError, match="nothing draws a Noun"):
        draw(Noun(), Path("noun.png"))


def test_who_registers_draws() -> None:
    class Drawn(Noun):
        pass

    drawn: list[Path] = []
    draw.register(Drawn)(lambda noun, path: drawn.append(path))
    to_html.register(Drawn)(lambda noun: f"<b>{noun}</b>")
    draw(Drawn(), Path("noun.png"))
    assert drawn == [Path("noun.png")]
    assert to_html(Drawn()) == "<b>a < b</b>"
