"""What the benchmark of explanations says of each method, in plain words for the page.

`benchmark.json` has its numbers: `python tools/page_benchmark.py` takes them from the data of
`sightline experiment explanations`. No number stands in a sentence here.
"""

import functools
import json
from importlib.resources import files
from typing import Any

CHANCE = 0.5  # of two boxes, how often a map prefers its own by chance


@functools.cache
def read_benchmark() -> dict[str, Any]:
    """`data`, `split`, `pictures`, `words`, `pairs`, and the measures of `methods` by name."""
    text = (files("sightline.report") / "benchmark.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def describe_source() -> str:
    """What the numbers were measured on.

    >>> describe_source().startswith("Measured on")
    True
    """
    numbers = read_benchmark()
    return (
        f"Measured on {numbers['pictures']} photographs of {numbers['data']} ({numbers['split']} "
        f"split) with boxes of what words name, for the captioner that comes with Sightline: "
        f"{numbers['words']} words, {numbers['pairs']} pairs of different things. Of another "
        "captioner, methods may rank differently."
    )


def describe_method(name: str) -> str:
    """What the benchmark says of a method: where its maps are, and if they tell words apart.

    >>> describe_method("a_plug_in")
    'Not measured for that captioner.'
    """
    methods: dict[str, Any] = read_benchmark()["methods"]
    if name not in methods:
        return "Not measured for that captioner."
    measured = methods[name]
    inside, prefers = measured["inside"], measured["prefers_its_box"]
    points = round(100 * inside["mean"])
    best = all(inside["mean"] >= other["inside"]["mean"] for other in methods.values())
    sentence = f"{points} points more of its map lies on the thing than chance would put there"
    sentence += ", more than of any other method. " if best else ". "
    sentence += (
        f"Of two things in a picture, it prefers the right one in {prefers['mean']:.0%} of cases"
    ).replace("%", " %")
    if prefers["low"] <= CHANCE:
        sentence += ", which may be chance"
    return sentence + "."
