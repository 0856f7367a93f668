"""`sightline results`."""

from dataclasses import asdict
from pathlib import Path

import click

from sightline.cli.options import json_option, print_json
from sightline.files import atomic_write

_LEGEND = """\
Scores are percentages, on the test split unless marked dev. A run is named after its recipe, or
after what it changes in one. Parameters exclude the image encoder. Bad endings are captions that
break off, as in "with a"."""


@click.command("results")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables to this Markdown file instead of printing them.",
)
@click.option(
    "--published",
    type=click.Choice(["flickr8k", "flickr30k", "coco"]),
    help="Add a table of published results on this dataset.",
)
@click.option(
    "--settings",
    is_flag=True,
    help="Add a column of settings that differ from the first run with the same model and as many "
    "phases.",
)
@json_option
def command(
    runs: tuple[Path, ...],
    output: Path | None,
    published: str | None,
    settings: bool,
    as_json: bool,
) -> None:
    """Tabulate training RUNS: what was trained, for how long, and the scores.

    Dev scores come from training. Test scores appear once you have run `sightline evaluate RUN`
    (with `--phase N` for the end of a phase). A checkpoint exported by `sightline pack` has a row
    too. In place of runs you no longer have, give a file of rows printed by --json, which have the
    training time as well. Without RUNS, --published prints only published results.
    """
    from sightline.evaluation.results import (
        means_to_markdown,
        published_to_markdown,
        results_of,
        to_markdown,
    )

    if as_json and (published or settings):
        raise click.UsageError("--published and --settings cannot be combined with --json")
    if not runs and published is None:
        raise click.UsageError("give training runs, or --published")
    rows = [row for run in runs for row in results_of(run)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    tables = [to_markdown(rows, settings)] if rows else []
    if means := means_to_markdown(rows):
        tables.append(f"Mean and standard deviation of runs that differ in their seed:\n\n{means}")
    if published:
        tables.append(published_to_markdown(published))
    text = "\n".join(tables)
    if output is None:
        click.echo(text, nl=False)
        return
    options = ["--settings"] * settings + (["--published", published] if published else [])
    names = (run.name if run.is_file() else f"runs/{run.name}" for run in runs)
    command = " ".join(["sightline results", *names, *options])
    legend = f"{_LEGEND}\n\n" if rows else ""
    with atomic_write(output) as file:
        file.write(f"# Results\n\n`{command} -o {output.name}`\n\n{legend}{text}")
