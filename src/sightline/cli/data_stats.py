"""`sightline data stats`."""

from pathlib import Path

import click
from rich.table import Table

from sightline.cli.options import (
    boxes_option,
    console,
    dataset_argument,
    images_option,
    json_option,
    open_dataset,
    print_json,
)
from sightline.data.stats import Stats, measure
from sightline.printing import printable


@click.command("stats")
@dataset_argument
@images_option
@boxes_option
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot caption lengths and vocabulary coverage to this .png, .pdf or .svg file.",
)
@json_option
def command(
    dataset: Path, images: Path | None, boxes: Path | None, figure: Path | None, as_json: bool
) -> None:
    """Show a dataset's size, caption lengths, and vocabulary coverage by minimum word count.

    Lengths and coverage are those of the training split. Pictures are not opened.
    """
    stats = measure(open_dataset(dataset, images, boxes))
    if figure is not None:
        stats.plot(figure)
    if as_json:
        print_json(stats.to_json())
        return
    console.print(_sizes(stats))
    console.print()
    console.print(_lengths(stats))
    console.print()
    console.print(_coverage(stats))
    if figure is not None:
        click.echo(f"\nFigure written to {printable(figure)}.")


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _sizes(stats: Stats) -> Table:
    table = _table("split", "pictures", "captions", "tokens per caption", "with boxes")
    for name, size in stats.splits.items():
        table.add_row(
            name,
            f"{size.images:,}",
            f"{size.captions:,}",
            f"{size.tokens / max(size.captions, 1):.1f}",
            f"{size.with_boxes:,}",
        )
    return table


def _lengths(stats: Stats) -> Table:
    """A histogram in at most twenty lines."""
    longest = max(stats.lengths, default=0)
    step = longest // 20 + 1
    bins: dict[int, int] = {}
    for length, count in stats.lengths.items():
        bins[length // step] = bins.get(length // step, 0) + count
    table = Table("tokens", "captions", "", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for number, count in sorted(bins.items()):
        low, high = number * step, number * step + step - 1
        bar = "█" * round(40 * count / max(bins.values()))
        table.add_row(str(low) if step == 1 else f"{low}-{high}", f"{count:,}", bar)
    return table


def _coverage(stats: Stats) -> Table:
    table = _table("minimum count", "words", "tokens covered")
    for minimum, words, share in stats.coverage:
        table.add_row(str(minimum), f"{words:,}", f"{100 * share:.2f} %")
    return table
