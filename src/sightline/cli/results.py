"""`sightline results`."""

from dataclasses import asdict
from pathlib import Path

import click

from sightline.cli.options import json_option, print_json
from sightline.files import atomic_write

_LEGEND = """\
Scores are in percent, and of the test split unless they are of dev. A run is named after its
recipe, or after what it changes in one; parameters are the captioner's without the image encoder,
minutes those of training. Bad endings are captions that break off, as in "with a"."""


@click.command("results")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Markdown file to write the table into; default: print it.",
)
@click.option(
    "--published", is_flag=True, help="With what papers and others print for Flickr8k, below."
)
@click.option(
    "--settings",
    is_flag=True,
    help="With what recipes set otherwise than the first of their model and as many stages.",
)
@json_option
def command(
    runs: tuple[Path, ...], output: Path | None, published: bool, settings: bool, as_json: bool
) -> None:
    """Tabulate training RUNS: what was trained, for how long, and the scores.

    Dev scores are those of training; test scores are there once `sightline evaluate RUN` (and
    `--stage N`) has been run. What `sightline pack` made has a row, too, with the time of all
    that it is a mean of. Runs that are gone are named by a file of rows that --json printed.
    """
    from sightline.evaluation.results import (
        means_to_markdown,
        published_to_markdown,
        results_of,
        to_markdown,
    )

    if as_json and (published or settings):
        raise click.UsageError("--published and --settings are for the table: leave out --json")
    rows = [row for run in runs for row in results_of(run)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    tables = [to_markdown(rows, settings)]
    if means := means_to_markdown(rows):
        tables.append(f"Mean and standard deviation of runs that differ in their seed:\n\n{means}")
    if published:
        tables.append(published_to_markdown())
    text = "\n".join(tables)
    if output is None:
        click.echo(text, nl=False)
        return
    options = ["--settings"] * settings + ["--published"] * published
    names = (run.name if run.is_file() else f"runs/{run.name}" for run in runs)
    command = " ".join(["sightline results", *names, *options])
    with atomic_write(output) as file:
        file.write(f"# Results\n\n`{command} -o {output.name}`\n\n{_LEGEND}\n\n{text}")
