"""`sightline score`."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from sightline.cli.options import console, json_option, print_json
from sightline.errors import DataError
from sightline.files import atomic_write
from sightline.metrics.bootstrap import Difference, compare
from sightline.metrics.inputs import Scorable, read_scorable
from sightline.metrics.report import DEFAULT, METRICS, measure
from sightline.metrics.score import Score

_path = click.Path(path_type=Path)


@click.command("score")
@click.argument("results", type=_path)
@click.option(
    "--refs",
    "references",
    type=_path,
    multiple=True,
    required=True,
    help="The references. Give it several times for several plain-text files.",
)
@click.option("--split", help="Score against one split of the references only, as 'test'.")
@click.option(
    "--metrics",
    default=",".join(DEFAULT),
    show_default=True,
    help=f"Any of {', '.join(METRICS)}. What the COCO evaluation prints as CIDEr is cider-d.",
)
@click.option(
    "--per-image",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the score of each picture to this CSV file.",
)
@click.option(
    "--against",
    type=_path,
    help="Other results for the same pictures: adds differences, 95 % intervals and p-values.",
)
@json_option
def command(
    results: Path,
    references: tuple[Path, ...],
    split: str | None,
    metrics: str,
    per_image: Path | None,
    against: Path | None,
    as_json: bool,
) -> None:
    """Score captions against references, as the field does, without Java.

    \b
    RESULTS is one of
      results.json   COCO: [{"image_id": 42, "caption": "a dog runs"}, ...]
      results.jsonl  {"image": "dog.jpg", "captions": ["a dog runs"]} on each line
      results.txt    a caption on each line
    REFS is, for the first two, any dataset that `sightline data check` takes: COCO's
    captions_*.json, Karpathy's dataset_*.json, our .jsonl, Flickr8k's token.txt, or their folder.
    For results.txt it is .txt too, line i for line i; several references of a line are separated
    by tabs, or given in several files.
    """
    names = [name for name in metrics.split(",") if name.strip()]
    if not names:
        raise DataError(f"no metric named; choose from {', '.join(METRICS)}")
    scored = read_scorable(results, references, split)
    scores = measure(scored.candidates, scored.references, names)
    if per_image is not None:
        _write_csv(per_image, scored, scores)
    differences: list[Difference] = []
    if against is not None:
        other = read_scorable(against, references, split)
        others = measure(other.candidates, other.references, names)
        differences = [compare(ours, theirs) for ours, theirs in zip(scores, others, strict=True)]
    if as_json:
        print_json(_content(scored, scores, differences))
        return
    console.print(_compared(results, against, differences) if against else _plain(scores))
    console.print(f"{len(scored.images):,} pictures; values times 100.", style="dim")


def _write_csv(path: Path, scored: Scorable, scores: Sequence[Score]) -> None:
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "caption", *(score.name for score in scores)])
        columns = zip(*(score.per_image.tolist() for score in scores), strict=True)
        rows = zip(scored.images, scored.candidates, columns, strict=True)
        writer.writerows([image, caption, *values] for image, caption, values in rows)


def _content(
    scored: Scorable, scores: Sequence[Score], differences: Sequence[Difference]
) -> dict[str, Any]:
    content: dict[str, Any] = {"images": len(scored.images)}
    content["scores"] = {score.name: score.corpus for score in scores}
    if differences:
        content["against"] = {
            found.name: {
                "value": found.other,
                "difference": found.difference,
                "low": found.low,
                "high": found.high,
                "p": found.p,
            }
            for found in differences
        }
    return content


def _plain(scores: Sequence[Score]) -> Table:
    table = Table("metric", "score", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for score in scores:
        table.add_row(score.name, f"{100 * score.corpus:.2f}")
    return table


def _compared(results: Path, against: Path, differences: Sequence[Difference]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("metric", results.name, against.name, "difference", "95 % interval", "p"):
        table.add_column(heading, justify="right" if heading != "metric" else "left")
    for found in differences:
        table.add_row(
            found.name,
            f"{100 * found.value:.2f}",
            f"{100 * found.other:.2f}",
            f"{100 * found.difference:+.2f}",
            f"{100 * found.low:+.2f} to {100 * found.high:+.2f}",
            f"{found.p:.4f}",
        )
    return table
