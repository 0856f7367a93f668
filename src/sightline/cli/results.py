"""`sightline results`."""

from dataclasses import asdict
from pathlib import Path

import click

from sightline.cli.options import json_option, print_json
from sightline.files import atomic_write


@click.command("results")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Markdown file to write the table into; default: print it.",
)
@json_option
def command(runs: tuple[Path, ...], output: Path | None, as_json: bool) -> None:
    """Tabulate training RUNS: what was trained, for how long, and the scores.

    Dev scores are those of training; test scores are there once `sightline evaluate RUN` (and
    `--stage N`) has been run.
    """
    from sightline.training.results import results_of, to_markdown

    rows = [row for run in runs for row in results_of(run)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table = to_markdown(rows)
    if output is None:
        click.echo(table, nl=False)
        return
    command = " ".join(["sightline results", *(f"runs/{run.name}" for run in runs)])
    with atomic_write(output) as file:
        file.write(f"# Results\n\n`{command} -o {output.name}`\n\n{table}")
