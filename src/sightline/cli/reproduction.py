"""`sightline reproduction`."""

from pathlib import Path

import click


@click.command("reproduction")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the page. Default: print it.",
)
@click.option(
    "--tables",
    is_flag=True,
    help="Also renew the verdicts below the table.md of each experiment.",
)
def command(folder: Path, output: Path | None, tables: bool) -> None:
    """Compare the results of experiments, in folders below FOLDER, with the claims of the papers.

    Makes a page of verdicts: reproduced, not reproduced or not tested.
    """
    import os

    from sightline.errors import ConfigError
    from sightline.experiments.reproduction import collect, renew_tables, to_page
    from sightline.files import atomic_write
    from sightline.printing import printable

    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder; give that of your experiments")
    if tables:
        renew_tables(folder)
    made_by = f"sightline reproduction {printable(folder)}"
    if output is None:
        click.echo(to_page(collect(folder), made_by, folder.as_posix()), nl=False)
        return
    link = Path(os.path.relpath(folder, output.parent)).as_posix()
    page = to_page(collect(folder), f"{made_by} -o {printable(output)}", link)
    with atomic_write(output) as file:
        file.write(page)
