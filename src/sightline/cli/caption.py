"""`sightline caption`."""

import sys
from pathlib import Path
from typing import Any

import click

from sightline.cli.options import (
    device_option,
    json_option,
    models_option,
    no_repeat_option,
    require_a_picture,
)
from sightline.printing import printable

CHECKS = ("unsupported", "all")  # which words are marked
_BATCH = 16  # at the terminal, where the first captions are waited for


class _Command(click.Command):
    """Takes `--check` without a value, too, whatever comes after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for arg in args:
            if joined[-1:] == ["--check"] and arg in CHECKS:
                joined[-1] = f"--check={arg}"
            else:
                joined.append(arg)
        return super().parse_args(
            ctx, [f"{arg}={CHECKS[0]}" if arg == "--check" else arg for arg in joined]
        )


@click.command("caption", cls=_Command)
@click.argument("pictures", nargs=-1, required=True, metavar="SOURCE...")
@models_option
@device_option
@click.option("--beam", type=click.IntRange(1), help="Beam width. Default: stored with the model.")
@click.option("--n-best", type=click.IntRange(1), default=1, help="Number of captions per picture.")
@click.option("--groups", type=click.IntRange(1), default=1, help="Groups for diverse beam search.")
@click.option(
    "--max-length",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Longest caption, in words.",
)
@no_repeat_option
@click.option("--avoid", multiple=True, metavar="WORD", help="A word that must not appear.")
@click.option("--require", multiple=True, metavar="WORD", help="A word that must appear.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a figure of each word's attention into this folder, one per picture.",
)
@click.option(
    "--check",
    type=click.Choice(CHECKS),
    metavar="[all]",
    help="Mark words that the picture does not support; with `--check all`, doubtful ones too.",
)
@click.option(
    "--avoid-unsupported",
    is_flag=True,
    help="Also show the caption of the beam that the picture supports best, if it is another.",
)
@json_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write captions to this file, or to sidecar files in this folder. An interrupted run "
    "goes on when it is started again.",
)
@click.option(
    "--format",
    metavar="NAME",
    help="Format of the output, if its suffix does not say: jsonl, csv, parquet, "
    "parquet-parts, txt, xmp, metadata, coco, label-studio, fiftyone.",
)
@click.option(
    "--attention",
    is_flag=True,
    help="Include each word's attention in tables and JSON. It is large.",
)
@click.option(
    "--skip-existing",
    is_flag=True,
    help="Add to an output that exists: caption only pictures that are new or have changed.",
)
@click.option("--overwrite", is_flag=True, help="Replace an output, or texts, that exist.")
@click.option(
    "--failures",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Table of pictures that failed. Default: OUTPUT.failures.jsonl.",
)
@click.option("--retry", is_flag=True, help="Try pictures again that failed in an earlier run.")
@click.option("--column", metavar="NAME", help="Column of a table that holds the paths.")
@click.option("--allow-urls", is_flag=True, help="Fetch pictures from web addresses.")
@click.option(
    "--batch-size", type=click.IntRange(1), default=32, show_default=True, help="With --output."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Threads that read pictures ahead of the captioner.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Caption on this machine, or on a Ray cluster into a folder of Parquet parts.",
)
@click.option("--address", help="Address of the Ray cluster. Default: this machine is one.")
def command(
    pictures: tuple[str, ...],
    models: tuple[Path, ...],
    device: str,
    beam: int | None,
    n_best: int,
    groups: int,
    max_length: int,
    no_repeat: int | None,
    avoid: tuple[str, ...],
    require: tuple[str, ...],
    figure: Path | None,
    avoid_unsupported: bool,
    check: str | None,
    as_json: bool,
    output: Path | None,
    format: str | None,
    attention: bool,
    skip_existing: bool,
    overwrite: bool,
    failures: Path | None,
    retry: bool,
    column: str | None,
    allow_urls: bool,
    batch_size: int,
    workers: int,
    engine: str,
    address: str | None,
) -> None:
    """Caption pictures, to the terminal or with -o to a file.

    A SOURCE is a picture, a folder, a pattern such as 'holiday/*.jpg', a table with a column of
    paths (CSV, JSONL, Parquet), a tar shard, or - for a picture or a list of paths on standard
    input.

    With --check, unsupported words are shown as [not seen: word]; with --check all, doubtful ones
    as word(?), too.
    The bundled captioner can check its words; for others, run sightline fit-support once.

    Pictures that cannot be read are reported and skipped (exit code 1).
    """
    only_with_output = {
        "--format": format,
        "--skip-existing": skip_existing,
        "--overwrite": overwrite,
        "--failures": failures,
        "--retry": retry,
        "--engine ray": engine == "ray",
    }
    for name, value in (only_with_output if output is None else {}).items():
        if value:
            raise click.UsageError(f"{name} needs -o.")
    for name, value in ({} if output is None else {"--json": as_json, "--figure": figure}).items():
        if value:
            raise click.UsageError(f"{name} cannot be combined with -o.")
    from sightline.bulk.caption_all import caption_all
    from sightline.bulk.sources import open_source
    from sightline.captioner import Captioner

    source = open_source(pictures, column, allow_urls)
    if not any(name == "-" or "://" in name or set(name) & set("*?[") for name in pictures):
        require_a_picture([Path(name) for name in pictures], models)
    captioner = Captioner.load(*models, device=device)
    options: dict[str, Any] = {
        "n_best": n_best,
        "groups": groups,
        "max_length": max_length,
        "avoid": avoid,
        "require": require,
        "check": check is not None,
        "avoid_unsupported": avoid_unsupported,
        "workers": workers,
    }
    wishes = {"beam": beam, "no_repeat_ngram": no_repeat}
    options |= {name: value for name, value in wishes.items() if value is not None}
    if output is None:
        from sightline.cli.caption_printing import Printed

        printed = Printed(captioner, figure, as_json, attention, check == "all")
        summary = caption_all(source, printed, captioner=captioner, batch_size=_BATCH, **options)
    else:
        summary = caption_all(
            source,
            output,
            captioner=captioner,
            format=format,
            failures=failures,
            skip_existing=skip_existing,
            overwrite=overwrite,
            retry=retry,
            attention=attention,
            batch_size=batch_size,
            engine=engine,
            address=address,
            show_progress=True,
            **options,
        )
        click.echo(f"sightline: {printable(output)}: {summary}", err=True)
        if summary.failed:
            table = failures or output.with_name(f"{output.name}.failures.jsonl")
            click.echo(f"sightline: what failed, and why: {printable(table)}", err=True)
    sys.exit(summary.failed > 0)
