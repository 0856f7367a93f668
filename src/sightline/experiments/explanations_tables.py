"""The tables of the benchmark of explanation methods."""

from collections.abc import Sequence
from typing import Any

from sightline.experiments.estimate import Estimate, to_markdown
from sightline.experiments.explanations_curves import MEASURES, PRINTED

_COUNTED = {  # by what is counted: a column that has the count
    "Words": "inside",
    "pairs of words": "discriminates",
    "words with regions hidden": "regions",
    "words with pixels hidden": "pixels",
    "words with shuffled weights": "shuffled",
}


def tabulate(rows: Sequence[dict[str, Any]]) -> str:
    """A row for each map, in percent and points."""
    header = ["captioner", "map", "inside", "pointed", "prefers its box", "discriminates"]
    header += ["regions hidden", "pixels hidden", "shuffled", "s per word"]
    lines = []
    for row in rows:
        cells = [row["run"], row["map"], row["inside"].show(100, sign="+")]
        cells += [row[c].show(100) for c in ("pointed", "prefers_its_box", "discriminates")]
        cells += [row["regions"].show(100), row["pixels"].show(100)]
        cells += [row["shuffled"].show(digits=2)]
        cells += [f"{row['seconds'].mean:.2f}" if row["seconds"].count else "-"]
        lines.append(cells)
    return to_markdown(header, lines)


def count(rows: Sequence[dict[str, Any]]) -> str:
    """How many words and pairs are behind the columns, a paragraph for each captioner."""
    lines = []
    for run in dict.fromkeys(row["run"] for row in rows):
        of_run = [row for row in rows if row["run"] == run]
        counts = [
            f"{of_what}: {max(row[column].count for row in of_run)}"
            for of_what, column in _COUNTED.items()
        ]
        lines.append(f"{run}. {'; '.join(counts)}.\n")
    return "\n".join(lines)


def tabulate_curves(rows: Sequence[dict[str, Any]]) -> str:
    """What words lose, in points: of deletion more is better, of insertion less."""
    header = ["captioner", "hidden", "map", "words", *MEASURES]
    header += [f"{measure} minus that of {PRINTED}" for measure in MEASURES]
    lines = []
    for row in rows:
        cells = [row["run"], f"{row['parts']}, {row['replacement']}", row["map"]]
        cells += [str(row["deletion"].count), *(row[measure].show(100) for measure in MEASURES)]
        cells += [_show_gap(row, measure) for measure in MEASURES]
        lines.append(cells)
    return to_markdown(header, lines)


def _show_gap(row: dict[str, Any], measure: str) -> str:
    gap: Estimate | None = row.get(f"{measure}_minus_{PRINTED}")
    return "-" if gap is None or row["map"] == PRINTED else gap.show(100, sign="+")
