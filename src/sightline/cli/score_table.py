"""Tables of scores. A metric may be undefined (NaN) on some captions."""

import math
from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from sightline.metrics.bootstrap import Difference
from sightline.metrics.diversity import Diversity
from sightline.metrics.score import Score


def percent(value: float, sign: str = "") -> str:
    """The value for a table: times 100, or a dash; with sign "+" always signed.

    >>> percent(0.25), percent(0.25, "+"), percent(math.nan)
    ('25.00', '+25.00', '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:{sign}.2f}"


def score_table(scores: Sequence[Score], variety: Diversity | None) -> Table:
    """The corpus value of every score, then the diversity of the captions."""
    table = _table("score")
    for label, score in zip(_labels([s.name for s in scores]), scores, strict=True):
        table.add_row(label, percent(score.corpus))
    if variety is not None:
        for row in _cells(variety):
            table.add_row(*row)
    return table


def difference_table(
    systems: Sequence[str], differences: Sequence[Difference], varieties: Sequence[Diversity]
) -> Table:
    """Two systems side by side, named by `systems`: scores with their differences, diversity."""
    table = _table(*map(escape, systems), "difference", "95 % interval", "p")
    for label, difference in zip(_labels([d.name for d in differences]), differences, strict=True):
        low, high = percent(difference.low, "+"), percent(difference.high, "+")
        table.add_row(
            label,
            percent(difference.value),
            percent(difference.other),
            percent(difference.difference, "+"),
            "–" if math.isnan(difference.p) else f"{low} to {high}",
            "–" if math.isnan(difference.p) else f"{difference.p:.4f}",
        )
    for (name, value), (_, against) in zip(*map(_cells, varieties), strict=True):
        table.add_row(name, value, against)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("metric", overflow="fold")  # a name is never cut, however narrow the terminal
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _labels(names: Sequence[str]) -> Iterator[str]:
    """The names, but parts of a metric ("SPICE object" after "SPICE") indented under the whole."""
    whole = None
    for name in names:
        if whole is not None and name.startswith(f"{whole} "):
            yield f"  {escape(name.removeprefix(f'{whole} '))}"
        else:
            whole = name
            yield escape(name)


def _cells(variety: Diversity) -> Iterator[tuple[str, str]]:
    for order, share in enumerate(variety.distinct, start=1):
        yield f"distinct-{order}", percent(share)
    yield "vocabulary", f"{variety.vocabulary:,} words"
    yield "mean length", f"{variety.mean_length:.1f} words"
    yield "bad endings", percent(variety.bad_endings)
    if variety.novel is not None:
        yield "novel", percent(variety.novel)
