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
    """`data`, `split`, `methods` with their measures, and what hiding parts at `chance` takes."""
    text = (files("sightline.report") / "benchmark.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def describe_source() -> str:
    """What the numbers were measured on.

    >>> describe_source().startswith("Measured on")
    True
    """
    numbers = read_benchmark()
    methods = numbers["methods"].values()
    counts = {
        (each["pictures"], each["inside"]["count"], each["prefers_its_box"]["count"] // 2)
        for each in methods
    }
    samples = " or ".join(
        f"{pictures:,} photographs ({words:,} words, {pairs} pairs of different things)"
        for pictures, words, pairs in sorted(counts, reverse=True)
    )
    hidden = " and ".join(
        f"{parts} for {fall['count']} words" for parts, fall in numbers["chance"].items()
    )
    return (
        f"Measured on {samples} of {numbers['data']} ({numbers['split']} split) with boxes of what "
        f"words name, for the captioner that comes with Sightline; {hidden} were blurred. Of "
        "another captioner, methods may rank differently."
    )


def describe_method(name: str) -> str:
    """What the benchmark says of a method: where its maps are, if they tell words apart, and if
    a word depends on what they show.

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
    return f"{sentence}.{_deletion(measured['deletion'])}"


def _deletion(falls: dict[str, Any]) -> str:
    """What a word loses as the parts that a map shows most are blurred."""
    chance = read_benchmark()["chance"]
    parts = [
        f"the {parts} that it shows most takes {100 * fall['mean']:.0f} points from a word's "
        f"probability (any {parts}: {100 * chance[parts]['mean']:.0f})"
        for parts, fall in falls.items()
    ]
    return f" Blurring {', blurring '.join(parts)}." if parts else ""
