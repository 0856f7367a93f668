"""How captions and explanations show themselves: a seam between what they are and who draws them.

The nouns are to the left of everything that draws, so they cannot import it. A drawing room
registers what it can draw; `Caption.plot` and a notebook's display ask here.
"""

from functools import singledispatch
from html import escape
from pathlib import Path
from typing import Any

from sightline.errors import ConfigError


@singledispatch
def to_html(noun: Any) -> str:
    """HTML for a notebook.

    >>> to_html("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(str(noun))}</pre>"


@singledispatch
def draw(noun: Any, path: Path) -> None:
    """A figure, written to a .png, .pdf or .svg."""
    raise ConfigError(f"nothing draws a {type(noun).__name__}: import sightline.report first")
