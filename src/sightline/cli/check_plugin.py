"""`sightline check-plugin`."""

import sys

import click
from rich.markup import escape
from rich.table import Table

from sightline.cli.options import console, json_option, print_json


@click.command("check-plugin")
@click.argument("module")
@json_option
def command(module: str, as_json: bool) -> None:
    """Run the laws on all that the plug-in MODULE has: captioners, objectives, methods, encoders.

    MODULE is a Python module, installed or in the current folder; or hf:FOLDER, a captioner of
    transformers. The exit code is 1 if a law does not hold.
    """
    from sightline.laws.plugin import check_plugin

    verdicts = check_plugin(module)
    broken = sum(not verdict.holds for verdict in verdicts)
    if as_json:
        print_json([verdict.to_json() for verdict in verdicts])
    else:
        table = Table("what", "law", "", "why, or a remark", box=None, pad_edge=False)
        for verdict in verdicts:
            mark = "holds" if verdict.holds else "[bold]broken[/bold]"
            subject = f"{verdict.kind} {verdict.subject}"
            table.add_row(escape(subject), verdict.law, mark, escape(verdict.why))
        console.print(table)
        console.print(f"\n{len(verdicts) - broken} of {len(verdicts)} laws hold.")
    sys.exit(1 if broken else 0)
