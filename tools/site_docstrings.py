"""Examples in docstrings, as code on the documentation site: an extension of griffe."""

import re

import griffe

# A line that begins with >>>, and what follows until an empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!$).*)*", re.MULTILINE)


def fenced(text):
    """A docstring with its examples between fences, without the directives of doctest.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1  # doctest: +SKIP\\n2"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    plain = re.sub(r" *# doctest: .*", "", text).replace("<BLANKLINE>", "")
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", plain)


class Examples(griffe.Extension):
    """Rewrites every docstring once, when it is read."""

    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
