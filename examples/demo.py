"""A demonstration of Sightline, run by `make demo`.

Captions the freely licensed photographs next to this file with the bundled captioner and marks
words that they do not support. Writes a page for each photograph that explains every word, and a
figure for the first one.
"""

import argparse
from pathlib import Path

import click

import sightline
from sightline.cli.caption_printing import mark
from sightline.memory import keep_freed_memory, leave_garbage_at_exit
from sightline.report.explanation_figure import draw_explanations
from sightline.report.page import render_page

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=HERE.parent / "demo", help="folder for the pages"
    )
    parser.add_argument("pictures", nargs="*", type=Path, default=sorted(HERE.glob("*.jpg")))
    options = parser.parse_args()
    keep_freed_memory()
    leave_garbage_at_exit()
    options.folder.mkdir(parents=True, exist_ok=True)
    captioner = sightline.load()
    for picture in options.pictures:
        report = captioner.report(picture, methods=("lrp", "attention"))
        page = options.folder / f"{picture.stem}.html"
        page.write_text(render_page(report), encoding="utf-8")
        click.echo(f"{picture.name}: {mark(report.caption)}\n    why: {page}")
        if picture == options.pictures[0]:
            figure = page.with_suffix(".png")
            draw_explanations(report).savefig(figure)
            click.echo(f"    and: {figure}")
    click.echo(
        "\nword(?) is doubtful; [not seen: word] is not supported by the picture (docs/support.md)."
    )


if __name__ == "__main__":
    main()
