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
    "explain": ("sightline.cli.explain", "Show why a caption has its words: page, figure, JSON."),
    "train": ("sightline.cli.train", "Train a captioner by a recipe."),
    "evaluate": ("sightline.cli.evaluate", "Caption a split with a trained model and score it."),
    "fit-support": (
        "sightline.cli.fit_support",
        "Teach a captioner which of its words to doubt, for caption --check.",
    ),
    "results": ("sightline.cli.results", "Tabulate training runs and their scores."),
    "pack": ("sightline.cli.pack", "Make a small checkpoint of a run, to give away."),
    "localise": ("sightline.cli.localise", "Measure whether words look at what they name."),
    "score": ("sightline.cli.score", "Score captions against references: BLEU, METEOR, CIDEr …"),
    "models": ("sightline.cli.models", "List the captioners that can be trained."),
    "data": ("sightline.cli.data", "Check, measure or make captioned pictures."),
    "encode": ("sightline.cli.encode", "Encode every picture of a dataset once, into a cache."),
    "encoders": ("sightline.cli.encoders", "List the image encoders, or fetch one's weights."),
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
        # click would say only "No such command"; name the one that was probably meant.
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
    epilog="Exit codes: 0 done, 1 done but something was found wrong or skipped, 2 not done. "
    'Shell completion: eval "$(_SIGHTLINE_COMPLETE=bash_source sightline)" (or zsh, fish).',
)
@click.version_option(__version__, prog_name="sightline")
def cli() -> None:
    """Image captions you can check.

    Every word shows what it looked at, and whether the picture supports it.
    """


def main() -> None:
    """Run the command line; a user's mistake ends in one line and exit code 2."""
    keep_freed_memory()
    leave_garbage_at_exit()
    try:
        cli(prog_name="sightline")
    except SightlineError as error:
        click.echo(f"sightline: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        # A full disk, a folder that may not be written to: the system's words, and the file.
        click.echo(f"sightline: {error.filename or 'files'}: {error.strerror}", err=True)
        sys.exit(2)
