"""`sightline data copies`."""

from pathlib import Path

import click
from rich.table import Table

from sightline.cli.options import console, dataset_argument, json_option, open_dataset, print_json
from sightline.data.near_copies import BITS, MOST, near_copies
from sightline.printing import printable

_SHOWN = 20


@click.command("copies")
@dataset_argument
@click.argument("other", type=click.Path(path_type=Path))
@click.option(
    "--most",
    type=click.IntRange(0, BITS // 4),
    default=MOST,
    show_default=True,
    help=f"Bits of {BITS} in which the fingerprints of near-copies differ at most.",
)
@json_option
@click.pass_context
def command(context: click.Context, dataset: Path, other: Path, most: int, as_json: bool) -> None:
    """Find pictures of DATASET that are in OTHER, too, even if resized or recompressed.

    Do this before you train on one dataset and test on another. The exit code is 1 if there are
    any.
    """
    ours, theirs = (open_dataset(path, None).images for path in (dataset, other))
    found = near_copies(ours, theirs, most, show_progress=True)
    if as_json:
        print_json(found.to_json())
    else:
        copies = f"{len(found.pairs):,} near-copies"
        console.print(f"{len(ours):,} and {len(theirs):,} pictures, {copies}.")
        table = Table("split", "split of the other", "pairs", box=None, pad_edge=False)
        for splits, count in sorted(found.by_split().items()):
            table.add_row(*splits, f"{count:,}")
        if found.pairs:
            console.print(table)
        for pair in found.pairs[:_SHOWN]:
            names = f"{printable(pair.first.name)} is {printable(pair.second.name)}"
            console.print(f"{names} ({pair.bits} bits)", markup=False, soft_wrap=True)
        if len(found.pairs) > _SHOWN:
            console.print(f"and {len(found.pairs) - _SHOWN:,} more; --json has all of them")
        if found.unreadable:
            console.print(f"{found.unreadable:,} pictures could not be read.")
    context.exit(1 if found.pairs or found.unreadable else 0)
