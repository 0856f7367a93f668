"""`sightline data check`."""

import sys
from collections import Counter
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from sightline.cli.options import (
    boxes_option,
    console,
    dataset_argument,
    images_option,
    json_option,
    open_dataset,
    print_json,
)
from sightline.data.dataset import CaptionDataset
from sightline.data.validator import KINDS, Finding, check, clean
from sightline.errors import DataError
from sightline.printing import printable


@click.command("check")
@dataset_argument
@images_option
@boxes_option
@click.option(
    "--fix",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.jsonl",
    help="Write a cleaned copy of the captions as JSONL. The original is left unchanged.",
)
@click.option("--all", "show_all", is_flag=True, help="List every finding, not just the first few.")
@json_option
def command(
    dataset: Path,
    images: Path | None,
    boxes: Path | None,
    fix: Path | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """Find problems in a dataset's pictures, captions and splits.

    DATASET is a caption file (Sightline .jsonl, Karpathy or COCO .json, Flickr8k token.txt) or the
    folder that contains one. Every picture is decoded. The exit code is 1 if there are errors.
    """
    if fix is not None and (fix.suffix != ".jsonl" or fix.exists()):
        wrong = "exists already" if fix.exists() else "must end in .jsonl"
        raise DataError(f"{fix}: {wrong}; name a new .jsonl file for the cleaned copy")
    captions = open_dataset(dataset, images, boxes)
    findings = check(captions, show_progress=True)
    cleaned = clean(captions, findings)
    if fix is not None:
        from sightline.data.jsonl import write_jsonl

        write_jsonl(cleaned.images, fix)
    if as_json:
        print_json(
            {
                "images": len(captions),
                "usable": len(cleaned),
                "findings": [
                    {
                        "kind": finding.kind.title,
                        "error": finding.kind.is_error,
                        "image": finding.name,
                        "detail": finding.detail,
                    }
                    for finding in findings
                ],
            }
        )
    else:
        _print_table(findings, show_all)
        _print_verdict(captions, cleaned, findings, fix)
    sys.exit(any(finding.kind.is_error for finding in findings))


def _print_table(findings: list[Finding], show_all: bool) -> None:
    counts = Counter(finding.kind for finding in findings)
    table = Table("problem", "count", "where", "in a cleaned copy", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    table.columns[2].overflow = "fold"  # a truncated name is no help
    for kind in KINDS:
        names = [
            f"{finding.name} ({finding.detail})"
            if kind.is_error and finding.detail
            else finding.name
            for finding in findings
            if finding.kind is kind
        ]
        if names and not show_all and len(names) > 3:
            names = [*names[:3], f"… and {len(names) - 3} more (--all)"]
        if names:
            colour = "red" if kind.is_error else "yellow"
            table.add_row(
                Text(kind.title, colour),
                f"{counts[kind]:,}",
                Text("\n".join(map(printable, names))),
                kind.remedy,
            )
    if table.rows:
        console.print(table)
        console.print()


def _print_verdict(
    captions: CaptionDataset, cleaned: CaptionDataset, findings: list[Finding], fix: Path | None
) -> None:
    splits = Counter(image.split or "no split" for image in cleaned)
    sizes = ", ".join(f"{splits[name]:,} {name}" for name in sorted(splits))
    sentences = sum(len(image.captions) for image in cleaned)
    usable = f"{len(cleaned):,} pictures ({sizes}), {sentences:,} captions"
    has_errors = any(finding.kind.is_error for finding in findings)
    console.print(
        f"[red]Errors found[/]. Usable: {usable}; the dataset lists {len(captions):,} pictures."
        if has_errors
        else f"[green]No errors[/]: {usable}.",
        soft_wrap=True,
    )
    if fix is not None:
        click.echo(f"Cleaned copy written to {printable(fix)}: {usable}.")
    elif has_errors:
        click.echo("Use --fix FILE.jsonl to write a cleaned copy.")
