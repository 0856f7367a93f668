"""`sightline explain`."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sightline.cli.options import device_option, models_option, require_a_picture
from sightline.errors import ConfigError
from sightline.files import atomic_write
from sightline.printing import printable

if TYPE_CHECKING:
    from sightline.report.report import Report

_SUFFIXES = (".html", ".png", ".json")


@click.command("explain")
@click.argument("picture", type=click.Path(path_type=Path))
@models_option
@device_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File to write: an interactive page (.html), a figure (.png) or the numbers (.json).",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Explanation method: lrp, grad_cam, guided_grad_cam, attention (default: these four), "
    "occlusion, gradient_input, guided_backpropagation, a plug-in's, or all. Repeat for several.",
)
@click.option(
    "--words",
    multiple=True,
    default=("all",),
    metavar="WORDS",
    help="Words of the caption to explain, as in --words dog,grass. Default: all.",
)
@click.option("--caption", help="Explain this caption instead of the captioner's own.")
@click.option(
    "--why-not",
    multiple=True,
    metavar="WORD[@N]",
    help="Explain why the caption does not say WORD as its Nth word. Without N: at the position "
    "where WORD is most likely.",
)
def command(
    picture: Path,
    models: tuple[Path, ...],
    device: str,
    output: Path,
    methods: tuple[str, ...],
    words: tuple[str, ...],
    caption: str | None,
    why_not: tuple[str, ...],
) -> None:
    """Explain why the caption of PICTURE has its words: what each word is based on.

    A method that cannot explain the captioner is skipped with a line that says why (exit code 1).
    """
    if output.suffix not in _SUFFIXES:
        raise ConfigError(f"{output}: the output file must end in {', '.join(_SUFFIXES)}")
    require_a_picture([picture], models)
    unsaid = [_parse_why_not(text) for text in why_not]
    from sightline.captioner import Captioner
    from sightline.explain.methods import find_method, list_methods
    from sightline.report.report import DEFAULT_METHODS

    if "all" in methods:
        methods = tuple(list_methods())
    for method in methods:
        find_method(method)
    report = Captioner.load(*models, device=device).report(
        picture,
        caption=caption,
        words=[word.strip().lower() for part in words for word in part.split(",")],
        methods=tuple(dict.fromkeys(methods)) or DEFAULT_METHODS,
        why_not=unsaid,
        show_progress=True,
    )
    _write(report, output)
    click.echo(printable(output))
    for method, why in report.skipped.items():
        done = ", ".join(report.methods)
        click.echo(f"sightline: {method} was skipped: {printable(why)} (done: {done})", err=True)
    if report.skipped:
        sys.exit(1)


def _parse_why_not(text: str) -> tuple[str, int | None]:
    """A word and its position, which users count from 1.

    >>> _parse_why_not("dog"), _parse_why_not("Dog@3")
    (('dog', None), ('dog', 2))
    """
    match = re.fullmatch(r"([^@]+)(?:@([1-9]\d*))?", text)
    if match is None:
        raise ConfigError(f"--why-not {text}: give a word, or a word and its position as in dog@3")
    word, place = match.groups()
    return word.strip().lower(), None if place is None else int(place) - 1


def _write(report: "Report", output: Path) -> None:
    if output.suffix == ".png":
        from sightline.report.explanation_figure import draw_explanations

        with atomic_write(output, "wb") as file:
            draw_explanations(report).savefig(file, format="png", dpi=110)
        return
    with atomic_write(output) as file:
        if output.suffix == ".json":
            json.dump(report.to_json(), file, ensure_ascii=False)
        else:
            from sightline.report.page import render_page

            file.write(render_page(report))
