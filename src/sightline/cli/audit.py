"""`sightline audit`."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from sightline.cli.options import (
    console,
    device_option,
    json_option,
    models_option,
    print_json,
)
from sightline.printing import printable

_path = click.Path(path_type=Path)


@click.command("audit")
@click.argument("captions", type=_path)
@click.option(
    "--images",
    type=_path,
    help="Folder of the pictures. Default: the folder of CAPTIONS.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for report.html, audit.json, words.csv and words.parquet. An interrupted audit "
    "goes on when it is started again.",
)
@click.option(
    "--against",
    type=_path,
    help="Captions of a second system, of the same pictures: adds a comparison with paired 95 % "
    "intervals.",
)
@click.option(
    "--refs",
    "references",
    type=_path,
    help="Dataset of reference captions: adds scores, and measures the judge's calibration here.",
)
@click.option(
    "--metrics",
    default="bleu,rouge-l,cider-d",
    show_default=True,
    help="Metrics for --refs, as for `sightline score`.",
)
@click.option(
    "--pages",
    type=click.IntRange(0),
    default=12,
    show_default=True,
    help="Write explanation pages of this many of the worst pictures.",
)
@models_option
@device_option
@json_option
def command(
    captions: Path,
    images: Path | None,
    output: Path,
    against: Path | None,
    references: Path | None,
    metrics: str,
    pages: int,
    models: tuple[Path, ...],
    device: str,
    as_json: bool,
) -> None:
    """Check captions that somebody else wrote, word by word.

    \b
    CAPTIONS is one of
      a folder        dog.txt beside or for each dog.jpg, or a metadata.jsonl
      table.csv       a column of pictures (path, file_name, image …) and one of captions
                      (caption, text, description …); also .tsv and .parquet
      lines.jsonl     {"image": "dog.jpg", "caption": "a dog runs"} on each line
      results.json    COCO: [{"image_id": 42, "caption": "a dog runs"}, ...]
    The bundled captioner, or the one given with --model, is the judge. It marks words that the
    picture does not support. Words that it does not know are counted apart.

    Pictures that cannot be read are reported and skipped (exit code 1).
    """
    from sightline.audit.audit import audit_captions
    from sightline.captioner import Captioner

    document = audit_captions(
        captions,
        output,
        images,
        against=against,
        captioner=Captioner.load(*models, device=device),
        references=references,
        metrics=[name for part in metrics.split(",") if (name := part.strip())],
        pages=pages,
        show_progress=True,
    )
    if as_json:
        print_json({key: value for key, value in document.items() if key != "pictures"})
    else:
        _print(document)
        console.print(f"Report: {printable(output / 'report.html')}", markup=False)
    for problem in document["problems"][:5]:
        click.echo(
            f"sightline: skipped: {printable(problem['picture'])}: {printable(problem['why'])}",
            err=True,
        )
    sys.exit(bool(document["problems"]))


def _print(document: dict[str, Any]) -> None:
    from sightline.cli.score_table import percent

    columns = ("captions", "words", "seen", "doubtful", "not supported", "unknown")
    table = Table("system", *columns, box=None, pad_edge=False)
    for system in document["systems"]:
        counts = [f"{system[name]:,}" for name in columns[2:]]
        table.add_row(
            printable(system["name"]), f"{system['captions']:,}", f"{system['words']:,}", *counts
        )
    console.print(table)
    for row in document["comparison"]:
        bounds = [row[name] for name in ("difference", "low", "high")]
        if None not in bounds:
            difference, low, high = (percent(value, "+") for value in bounds)
            console.print(f"{row['name']}: {difference} ({low} to {high})", markup=False)
    made_up = [row for system in document["systems"] for row in system["made_up"]]
    if made_up:
        words = ", ".join(f"{row['text']} ({row['unsupported']})" for row in made_up[:8])
        console.print(f"Most often made up: {printable(words)}", markup=False)
