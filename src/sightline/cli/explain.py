"""`sightline explain`."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from sightline.cli.options import (
    device_option,
    find_pictures,
    models_option,
    new_name,
    require_a_picture,
)
from sightline.errors import ConfigError, PictureError
from sightline.files import atomic_write
from sightline.printing import printable

if TYPE_CHECKING:
    from sightline.captioner import Captioner
    from sightline.report.report import Report

_SUFFIXES = (".html", ".png", ".json")


@click.command("explain")
@click.argument("pictures", nargs=-1, required=True)
@models_option
@device_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write: an interactive page (.html), a figure (.png) or the numbers (.json). Of "
    "several pictures: a folder for a page of each, and index.html over them.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Explanation method: contrastive_lrp, grad_cam, guided_grad_cam, attention (default: "
    "these four), lrp, attn_lrp, occlusion, gradient_input, gradient_rollout (of Transformers), "
    "guided_backpropagation, a plug-in's, or all. Repeat for several.",
)
@click.option(
    "--words",
    multiple=True,
    default=("all",),
    metavar="WORDS",
    help="Words of the caption to explain, as in --words dog,grass. Default: all.",
)
@click.option(
    "--caption",
    help="Explain this caption instead of the captioner's own. Words that the captioner does not "
    "know are marked.",
)
@click.option(
    "--why-not",
    multiple=True,
    metavar="WORD[@N]",
    help="Explain why the caption does not say WORD as its Nth word. Without N: at the position "
    "where WORD is most likely. Of a word that the captioner does not know: the nearest it knows.",
)
def command(
    pictures: tuple[str, ...],
    models: tuple[Path, ...],
    device: str,
    output: Path,
    methods: tuple[str, ...],
    words: tuple[str, ...],
    caption: str | None,
    why_not: tuple[str, ...],
) -> None:
    """Explain why the captions of PICTURES have their words: what each word is based on.

    PICTURES are files, folders or patterns such as 'holiday/*.jpg'. Pictures that cannot be read,
    and methods that cannot explain the captioner, are skipped with a line that says why (exit
    code 1; with --method all, it is 0 for methods).
    """
    from sightline.report.report import DEFAULT_METHODS, parse_why_not

    paths = list(find_pictures(pictures))
    several = len(paths) > 1 or any(Path(name).is_dir() for name in pictures)
    unsaid = [parse_why_not(text) for text in why_not]
    if several:
        _refuse_what_is_for_one(output, words, caption, unsaid)
    elif output.suffix not in _SUFFIXES:
        raise ConfigError(f"{output}: the output file must end in {', '.join(_SUFFIXES)}")
    require_a_picture(paths, models)
    from sightline.captioner import Captioner
    from sightline.explain.methods import find_method, list_methods

    every = "all" in methods
    if every:
        methods = tuple(list_methods())
    for method in methods:
        find_method(method)
    options: dict[str, Any] = {
        "words": [word.strip().lower() for part in words for word in part.split(",")],
        "methods": tuple(dict.fromkeys(methods)) or DEFAULT_METHODS,
        "why_not": unsaid,
        "show_progress": True,
    }
    captioner = Captioner.load(*models, device=device)
    if several:
        sys.exit(_write_pages(captioner, paths, output, options, every))
    report = captioner.report(paths[0], caption=caption, **options)
    _write(report, output)
    click.echo(printable(output))
    _tell(report)
    sys.exit(bool(report.skipped) and not every)


def _refuse_what_is_for_one(
    output: Path,
    words: Sequence[str],
    caption: str | None,
    unsaid: Sequence[tuple[str, int | None]],
) -> None:
    if output.suffix in _SUFFIXES or output.is_file():
        raise ConfigError(f"{output}: for several pictures, give a folder to write pages into")
    if caption is not None or tuple(words) != ("all",) or any(n is not None for _, n in unsaid):
        raise ConfigError("--caption, --words and positions such as dog@3 are for one picture")


def _write_pages(
    captioner: "Captioner",
    paths: Sequence[Path],
    folder: Path,
    options: dict[str, Any],
    every_method: bool,
) -> bool:
    """A page for each picture, and the index over them; whether anything asked for was skipped."""
    from sightline.report.page import render_index, render_page
    from sightline.report.page_data import index_entry

    folder.mkdir(parents=True, exist_ok=True)
    entries, skipped, taken = [], False, {"index"}
    for path in paths:
        try:
            report = captioner.report(path, **options)
        except (PictureError, ConfigError) as error:  # such as an empty caption
            click.echo(f"sightline: skipped: {error}", err=True)
            skipped = True
            continue
        page = folder / f"{new_name(path.stem, taken)}.html"
        with atomic_write(page) as file:
            file.write(render_page(report, index="index.html"))
        click.echo(printable(page))
        _tell(report)
        skipped |= bool(report.skipped) and not every_method
        entries.append(index_entry(report, quote(os.fsencode(page.name))))
    if entries:
        with atomic_write(folder / "index.html") as file:
            file.write(render_index(entries))
        click.echo(printable(folder / "index.html"))
    return skipped


def _tell(report: "Report") -> None:
    """Say if the picture is unfamiliar, and which methods could not explain it, and why."""
    if report.unfamiliar:
        click.echo(f"sightline: {printable(report.name)}: {report.unfamiliar}", err=True)
    for method, why in report.skipped.items():
        done = ", ".join(report.methods)
        click.echo(f"sightline: {method} was skipped: {why} (done: {done})", err=True)


def _write(report: "Report", output: Path) -> None:
    if output.suffix == ".png":
        from sightline.report.explanation_figure import draw_explanations
        from sightline.report.saving import save_figure

        save_figure(draw_explanations(report), output)
        return
    with atomic_write(output) as file:
        if output.suffix == ".json":
            json.dump(report.to_json(), file, ensure_ascii=False)
        else:
            from sightline.report.page import render_page

            file.write(render_page(report))
