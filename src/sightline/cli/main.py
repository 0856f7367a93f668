"""`sightline COMMAND`: one module per command, imported only when that command runs."""

import contextlib
import importlib
import io
import os
import signal
import sys
import traceback
from typing import Any, NoReturn

import click

from sightline.errors import SightlineError
from sightline.memory import is_out_of_memory, keep_freed_memory, leave_garbage_at_exit
from sightline.printing import printable
from sightline.version import __version__

# Command name -> (module, one line for the list of commands). The line lives here so that
# `sightline --help` and shell completion import no command, and so no torch.
COMMANDS = {
    "caption": ("sightline.cli.caption", "Caption pictures."),
    "explain": (
        "sightline.cli.explain",
        "Explain each word of a caption, as a page, figure or JSON.",
    ),
    "serve": ("sightline.cli.serve", "Open a page for your pictures, and an HTTP API."),
    "audit": ("sightline.cli.audit", "Check captions that somebody else wrote, word by word."),
    "recipes": ("sightline.cli.recipes", "List the shipped recipes, or print one."),
    "train": ("sightline.cli.train", "Train a captioner from a recipe."),
    "tune": ("sightline.cli.tune", "Search the settings of a recipe for the best dev score."),
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
    "export": ("sightline.cli.export", "Export a captioner as ONNX."),
    "experiment": (
        "sightline.cli.experiment",
        "Make a table and a figure: compare explanations, reproduce a paper.",
    ),
    "reproduction": (
        "sightline.cli.reproduction",
        "Compare the results of experiments with the claims of the papers.",
    ),
    "compare-blind": (
        "sightline.cli.compare_blind",
        "Set up a blind comparison of two captioners by people.",
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
    "hub": ("sightline.cli.hub", "Share a captioner on the Hugging Face Hub, or get one."),
    "doctor": ("sightline.cli.doctor", "Describe this machine and run a short self-test."),
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
    epilog="Exit codes: 0 success, 1 finished but with problems found or files skipped, 2 failed, "
    "70 a bug, 130 or 143 interrupted. "
    'Shell completion: eval "$(_SIGHTLINE_COMPLETE=bash_source sightline)" (or zsh, fish).',
)
@click.version_option(__version__, prog_name="sightline")
def cli() -> None:
    """Image captions you can check.

    Shows what each word of a caption is based on, and whether the picture supports it.
    """


class Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


def main() -> None:
    """Run the command line and exit; whatever goes wrong is one line on standard error."""
    keep_freed_memory()
    leave_garbage_at_exit()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not have every letter
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(sys.argv[1:]))


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


def run(arguments: list[str]) -> int:
    """Run a command line; its exit code.

    0: done. 1: done, with problems found or files skipped. 2: what was given cannot be used.
    70: a bug in Sightline. 130 and 143: interrupted by Ctrl-C or a signal.
    """
    try:
        code = cli(arguments, prog_name="sightline", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _fail(130, f"interrupted; {_how_to_go_on(arguments)}")
    except Terminated:
        return _fail(143, f"terminated; {_how_to_go_on(arguments)}")
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.NoSuchOption as error:  # the likeliest alone: a list of guesses only puzzles
        near = f" Did you mean '{error.possibilities[0]}'?" if error.possibilities else ""
        return _fail(2, f"{error.message}{near} {_see_help(error)}")
    except click.ClickException as error:
        return _fail(2, f"{error.format_message()} {_see_help(error)}")
    except SightlineError as error:
        return _fail(2, str(error))
    except BrokenPipeError:  # whoever read the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as if ended by SIGPIPE
    except OSError as error:
        # A full disk or a read-only folder: the system's message and the file.
        return _fail(2, f"{error.filename or 'files'}: {error.strerror or error}")
    except Exception as error:
        if is_out_of_memory(error):
            return _fail(
                2, "there is not enough memory; use a smaller batch, or close other programs"
            )
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"[:300]
        return _fail(
            70,
            f"a bug in Sightline ({reason}); {_how_to_go_on(arguments)}. "
            f"{TRACEBACK}=1 shows where; please report it",
        )


TRACEBACK = "SIGHTLINE_TRACEBACK"  # an environment variable

_GOING_ON = {
    "train": "the same command resumes from the last checkpoint",
    "tune": "the same command goes on with the search",
    "encode": "the same command continues where it stopped",
    "caption": "with -o, the same command continues where it stopped",
    "compare-blind": "the same command continues where it stopped",
}


def _how_to_go_on(arguments: list[str]) -> str:
    command = next((word for word in arguments if not word.startswith("-")), "")
    return _GOING_ON.get(command, "run the same command again")


def _see_help(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)  # click does not say the command of every mistake
    return f"See {context.command_path} --help." if context else "Add --help to see how it is used."


def _fail(code: int, message: str) -> int:
    with contextlib.suppress(OSError):
        click.echo(f"sightline: {printable(message)}", err=True)
    return code
