"""`sightline COMMAND`: one module per command, imported only when that command runs."""

import importlib
import sys
from typing import Any

import click

from sightline.errors import SightlineError
from sightline.memory import keep_freed_memory, leave_garbage_at_exit
from sightline.version import __version__

# Command name -> (module, one line for the list of commands). The line lives here so that
# `sightline --help` and shell completion import no command, and so no torch.
COMMANDS = {
    "caption": ("sightline.cli.caption", "Caption pictures."),
    "explain": (
        "sightline.cli.explain",
        "Explain each word of a caption, as a page, figure or JSON.",
    ),
    "recipes": ("sightline.cli.recipes", "List the shipped recipes, or print one."),
    "train": ("sightline.cli.train", "Train a captioner from a recipe."),
    "evaluate": (
        "sightline.cli.evaluate",
        "Caption a split with trained models and score the captions.",
    ),
    "fit-support": (
        "sightline.cli.fit_support",
        "Fit the classifier of supported words for caption --check.",
    ),
    "results": ("sightline.cli.results", "Tabulate training runs and their scores."),
    "pack": ("sightline.cli.pack", "Export a small checkpoint for sharing, or average several."),
    "localise": (
        "sightline.cli.localise",
        "Measure whether explanations lie on the objects words name.",
    ),
    "score": ("sightline.cli.score", "Score captions against references: BLEU, METEOR, CIDEr …"),
    "models": ("sightline.cli.models", "List the captioning models."),
    "check-plugin": ("sightline.cli.check_plugin", "Test a plug-in against the laws."),
    "data": ("sightline.cli.data", "Check, measure or generate captioned pictures."),
    "encode": ("sightline.cli.encode", "Encode every picture of a dataset once, into a cache."),
    "encoders": (
        "sightline.cli.encoders",
        "List the image encoders, or download the weights of one.",
    ),
}


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported on first use."""

    def __init__(self, *args: Any, table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        command: click.Command = importlib.import_module(self.table[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click would say only "No such command"; suggest the one that was probably meant.
        if args and args[0] not in self.table and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.table, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Commands: {', '.join(self.table)}."
            ctx.fail(f"No such command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 finished but with problems found or files skipped, 2 failed. "
    'Shell completion: eval "$(_SIGHTLINE_COMPLETE=bash_source sightline)" (or zsh, fish).',
)
@click.version_option(__version__, prog_name="sightline")
def cli() -> None:
    """Image captions you can check.

    Shows what each word of a caption is based on, and whether the picture supports it.
    """


def main() -> None:
    """Run the command line. A user error prints one line and exits with code 2."""
    keep_freed_memory()
    leave_garbage_at_exit()
    try:
        cli(prog_name="sightline")
    except SightlineError as error:
        click.echo(f"sightline: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        # A full disk or a read-only folder: print the system's message and the file.
        click.echo(f"sightline: {error.filename or 'files'}: {error.strerror}", err=True)
        sys.exit(2)
